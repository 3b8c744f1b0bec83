"""Evaluation: trec_eval's measures to the last digit, the AST tables, and honest statistics."""

from linker.evaluation.entries import Entries
from linker.evaluation.evaluator import evaluate
from linker.evaluation.result import Evaluation
from linker.evaluation.trec import read_qrels, read_run, write_run

__all__ = ["Entries", "Evaluation", "evaluate", "read_qrels", "read_run", "write_run"]
