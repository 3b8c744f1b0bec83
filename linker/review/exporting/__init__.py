"""Write judgements to spreadsheets, JSON lines, TREC files and RIS; the file's suffix determines the format."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.review.exporting.writing import ExportReport, check_suffix, export

__all__ = ["ExportReport", "check_suffix", "export"]
__getattr__ = lazy(__name__)
