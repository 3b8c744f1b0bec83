"""Match posts against standing seed texts as they arrive: each post is a query to an index of the seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.watching.arrivals import Arrivals, Position
    from linker.watching.kept import Kept
    from linker.watching.matching import Match, Matcher

__all__ = ["Arrivals", "Kept", "Match", "Matcher", "Position"]
__getattr__ = lazy(
    __name__,
    {
        "Arrivals": "linker.watching.arrivals",
        "Kept": "linker.watching.kept",
        "Match": "linker.watching.matching",
        "Matcher": "linker.watching.matching",
        "Position": "linker.watching.arrivals",
    },
)
