"""A review as the command line and the page use it: `Review(engine, ledger)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.review.session.review import Records, Review

__all__ = ["Records", "Review"]
__getattr__ = lazy(
    __name__, {"Records": "linker.review.session.review", "Review": "linker.review.session.review"}
)
