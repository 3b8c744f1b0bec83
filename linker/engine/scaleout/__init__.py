"""Build on many machines with Ray, whose workers encode and, for a server index, also write to the servers."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.engine.scaleout.encoding import encoded
    from linker.engine.scaleout.writing import by_many

__all__ = ["by_many", "encoded"]
__getattr__ = lazy(__name__)
