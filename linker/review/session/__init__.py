"""A review as the command line and the page use it: `Review(engine, ledger)`, and the reading loop."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.review.session.finding import Answer, FindLimits, FindReport, find
    from linker.review.session.noting import note_of, note_of_rows
    from linker.review.session.reading import Records
    from linker.review.session.review import Review

__all__ = ["Answer", "FindLimits", "FindReport", "Records", "Review", "find", "note_of", "note_of_rows"]
__getattr__ = lazy(__name__)
