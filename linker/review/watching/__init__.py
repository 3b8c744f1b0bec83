"""Match posts against standing seed texts as they arrive: each post is a query to an index of the seeds."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.review.watching.arrivals import Arrivals
    from linker.review.watching.matching import Matcher, PostMatch
    from linker.review.watching.output import Output
    from linker.review.watching.rotation import Position

__all__ = ["Arrivals", "Matcher", "Output", "Position", "PostMatch"]
__getattr__ = lazy(__name__)
