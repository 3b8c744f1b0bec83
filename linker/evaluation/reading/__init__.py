"""Reading of judgements and runs in TREC's formats, exactly as trec_eval does and fast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.evaluation.reading.entries import Entries
    from linker.evaluation.reading.trec import read_qrels, read_run, write_run

__all__ = ["Entries", "read_qrels", "read_run", "write_run"]
__getattr__ = lazy(
    __name__,
    {
        "Entries": "linker.evaluation.reading.entries",
        "read_qrels": "linker.evaluation.reading.trec",
        "read_run": "linker.evaluation.reading.trec",
        "write_run": "linker.evaluation.reading.trec",
    },
)
