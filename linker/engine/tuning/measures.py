"""The measures that `linker index tune` can maximise, per query."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import BoolArray, Float64Array
from indexes.interface import RowArray
from linker.evaluation.first_ranks import first_ranks, reciprocal_ranks, successes

HYBRID_CERTAINTY = 1.0  # minimum lead of hybrid settings and BM25 parameters, in standard errors
SINGLE_CERTAINTY = 2.0
INTERVAL = 2.0  # standard errors on either side


@dataclass(frozen=True, slots=True)
class Lead:
    """The mean of paired differences between two settings, and its standard error (infinite for a single query)."""

    mean: float
    error: float

    @classmethod
    def of(cls, ahead: Float64Array, behind: Float64Array) -> Lead:
        """Return the lead of the values `ahead` over `behind`, both [Q], for the same queries."""
        difference = ahead - behind
        if len(difference) < 2:
            return cls(float(difference.mean()), math.inf)
        return cls(float(difference.mean()), float(difference.std(ddof=1) / math.sqrt(len(difference))))

    def exceeds(self, errors: float) -> bool:
        """Return whether the lead is positive and exceeds that many standard errors."""
        return round(self.mean, 12) > 0 and self.mean > errors * self.error

    def __str__(self) -> str:
        if math.isinf(self.error):
            return f"{self.mean:.4f}"
        width = INTERVAL * self.error
        return f"{self.mean:.4f} ({self.mean - width:.4f} to {self.mean + width:.4f})"

    def to_json(self) -> dict[str, float | None]:
        """Return mean, standard error and interval (mean ± two standard errors); None if the error is undefined."""
        if math.isinf(self.error):
            return {"mean": self.mean, "error": None, "low": None, "high": None}
        width = INTERVAL * self.error
        return {
            "mean": self.mean, "error": self.error, "low": self.mean - width, "high": self.mean + width,
        }  # fmt: skip


def reciprocal_rank(found: BoolArray, relevant: Float64Array) -> Float64Array:
    """Return 1 / rank of the first relevant hit [Q], 0 without one; `found` [Q, k] marks the relevant hits."""
    return reciprocal_ranks(first_ranks(found))


def success_at(cutoff: int) -> Callable[[BoolArray, Float64Array], Float64Array]:
    """Return the measure that is 1 if a relevant hit is among the first `cutoff`, else 0."""

    def success(found: BoolArray, relevant: Float64Array) -> Float64Array:
        return successes(first_ranks(found), cutoff)

    return success


def average_precision(found: BoolArray, relevant: Float64Array) -> Float64Array:
    """Return the sum of precisions at the ranks of relevant hits, divided by the number of relevant documents, [Q].

    `found` [Q, k] marks the relevant hits; `relevant` [Q] counts the relevant documents.
    """
    precision = np.cumsum(found, axis=1) / np.arange(1, found.shape[1] + 1)
    summed: Float64Array = (precision * found).sum(axis=1)
    return summed / np.maximum(relevant, 1.0)


MEASURES: Mapping[str, Callable[[BoolArray, Float64Array], Float64Array]] = {
    "mrr": reciprocal_rank,
    "success@1": success_at(1),
    "success@5": success_at(5),
    "map": average_precision,
}


def evaluate(rows: RowArray, relevant: Sequence[Sequence[int]]) -> dict[str, Float64Array]:
    """Return the values [Q] of every measure for one ranking `rows` [Q, k]."""
    hits = find_relevant(rows, relevant)
    counts = np.array([len(r) for r in relevant], dtype=np.float64)
    return {name: measure(hits, counts) for name, measure in MEASURES.items()}


def find_relevant(rows: RowArray, relevant: Sequence[Sequence[int]]) -> BoolArray:
    """Return whether each hit of `rows` [Q, k] is among its query's relevant rows, bool [Q, max(k, 1)]; −1 never is."""
    if not rows.shape[1]:
        return np.zeros((len(rows), 1), dtype=bool)
    padded = np.full((len(rows), max(map(len, relevant), default=0)), -1, dtype=np.int64)
    for query, query_rows in enumerate(relevant):
        padded[query, : len(query_rows)] = query_rows
    found = np.zeros(rows.shape, dtype=bool)
    for column in padded.T:
        found |= rows == column[:, None]
    return found & (rows >= 0)
