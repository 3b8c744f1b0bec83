"""The engine: an index with its encoder and rankers, as one object that can be built, changed and searched."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.engine.building import BuildOptions, build, create
    from linker.engine.engine import Engine

__all__ = ["BuildOptions", "Engine", "build", "create"]
__getattr__ = lazy(__name__)
