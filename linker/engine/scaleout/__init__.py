"""Builds on many machines with Ray: encode there, or encode there and write to the servers from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.engine.scaleout.encoding import encoded
    from linker.engine.scaleout.writing import by_many

__all__ = ["by_many", "encoded"]
__getattr__ = lazy(__name__)
