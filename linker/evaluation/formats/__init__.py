"""Judgements and runs in the formats of other tools: JSON, JSON lines, Parquet, BEIR folders, ir_datasets."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.evaluation.formats.sources import QrelsLike, RunLike, load_qrels, load_run
    from linker.evaluation.formats.writing import FORMATS, RunFormat, format_of, write_run_as

__all__ = [
    "FORMATS",
    "QrelsLike",
    "RunFormat",
    "RunLike",
    "format_of",
    "load_qrels",
    "load_run",
    "write_run_as",
]
__getattr__ = lazy(__name__)
