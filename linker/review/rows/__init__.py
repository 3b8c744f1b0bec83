"""Match each row (seed) with a document: its candidates and state, links accepted unread, and the table of results."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.review.rows.states import Row, states, table

__all__ = ["Row", "states", "table"]
__getattr__ = lazy(__name__)
