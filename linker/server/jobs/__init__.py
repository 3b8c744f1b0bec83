"""Long work of a review in a process of its own: it tells how far it is, and a cancelled one leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.server.jobs.job import Job, Step

__all__ = ["Job", "Step"]
__getattr__ = lazy(__name__)
