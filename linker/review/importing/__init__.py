"""Import judgements into a ledger from spreadsheets, JSON lines, TREC qrels and RIS."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.review.importing.judgements import ImportReport, import_judgements

__all__ = ["ImportReport", "import_judgements"]
__getattr__ = lazy(__name__)
