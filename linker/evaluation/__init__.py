"""Evaluation of retrieval runs: trec_eval's measures to the last digit, tables of runs, intervals and tests."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.evaluation.evaluator import evaluate
    from linker.evaluation.formats import QrelsLike, RunLike
    from linker.evaluation.reading.entries import Entries
    from linker.evaluation.reading.trec import read_qrels, read_run, write_run
    from linker.evaluation.result import Evaluation

__all__ = ["Entries", "Evaluation", "QrelsLike", "RunLike", "evaluate", "read_qrels", "read_run", "write_run"]
__getattr__ = lazy(__name__)
