"""Choosing between BM25, dense and hybrid search on judged queries: `linker index tune`.

Hybrid search does not always win: a weak retriever drags a good one down. So every candidate is measured on the
judged queries, and a hybrid is chosen only where it is clearly ahead of the better single retriever: its mean lead
over the queries must exceed `CERTAINTY` standard errors of the paired differences. (Chance flatters the best of many
candidates; a rule of two standard errors, rather than one, makes up for part of that.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from indexes.dtypes import BoolArray, Float64Array
from indexes.fusion import Fusion, Method, Ranking, fuse
from indexes.hybrid import Mode
from linker.errors import InputError
from linker.evaluation.first_ranks import first_ranks, reciprocal_ranks, successes

CERTAINTY = 2.0
WEIGHTS = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9)  # of the dense retriever, the plainest first


def reciprocal_rank(found: BoolArray, relevant: Float64Array) -> Float64Array:
    """Return 1 / rank of the first relevant hit [Q], 0 without one; `found` [Q, k] marks the relevant hits."""
    return reciprocal_ranks(first_ranks(found))


def success_at(cutoff: int) -> Callable[[BoolArray, Float64Array], Float64Array]:
    """Return the measure that is 1 where a relevant hit is among the first `cutoff`, else 0."""

    def success(found: BoolArray, relevant: Float64Array) -> Float64Array:
        return successes(first_ranks(found), cutoff)

    return success


def average_precision(found: BoolArray, relevant: Float64Array) -> Float64Array:
    """Return the summed precision at the ranks of relevant hits over the number of relevant documents, [Q].

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


@dataclass(frozen=True, slots=True)
class SearchSetting:
    """A way to search, with its mean value by measure."""

    mode: Mode
    fusion: Fusion | None
    means: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Tuning:
    """The chosen setting, all candidates, and why it was chosen (`reason` is a sentence for the user)."""

    chosen: SearchSetting
    candidates: tuple[SearchSetting, ...]
    measure: str
    queries: int
    reason: str


def tune(
    bm25: Ranking | None,
    dense: Ranking | None,
    relevant: Sequence[Sequence[int]],
    measure: str = "mrr",
) -> Tuning:
    """Choose the search setting with the highest mean of `measure` on the judged queries.

    `bm25` and `dense` are the rankings [Q, depth] of the same Q queries, None where the index lacks the retriever;
    fusion weights are in that order. `relevant` holds each query's relevant rows; −1 stands for a relevant document
    that is not in the index: it is counted, never found. Every query counts; one without relevant rows scores 0.
    Ties go to the simpler setting: bm25, then dense, then the hybrids in the order of `fusions`. Raises InputError
    where the measure is unknown, or there is no retriever or no relevant document to choose by.
    """
    _check(bm25, dense, relevant, measure)
    settings: list[tuple[Mode, Fusion | None, Ranking]] = []
    if bm25 is not None:
        settings.append(("bm25", None, bm25))
    if dense is not None:
        settings.append(("dense", None, dense))
    if bm25 is not None and dense is not None:
        depth = max(bm25[0].shape[1], dense[0].shape[1], 1)
        settings += [("hybrid", f, fuse([bm25, dense], f, depth)) for f in fusions()]
    candidates, values = [], []
    for mode, fusion, (rows, _) in settings:
        by_measure = _evaluate(rows, relevant)
        values.append(by_measure[measure])
        candidates.append(SearchSetting(mode, fusion, {m: float(v.mean()) for m, v in by_measure.items()}))
    index, reason = _choose(candidates, values)
    return Tuning(candidates[index], tuple(candidates), measure, len(relevant), reason)


def fusions() -> list[Fusion]:
    """Return the hybrids to try, the plainest first."""
    settings: list[tuple[Method, int]] = [
        ("rrf", 60),
        ("rrf", 10),
        ("max", 60),
        ("minmax", 60),
        ("zscore", 60),
    ]
    return [Fusion(method, (round(1 - w, 1), w), k) for method, k in settings for w in WEIGHTS]


def _check(
    bm25: Ranking | None, dense: Ranking | None, relevant: Sequence[Sequence[int]], measure: str
) -> None:
    if measure not in MEASURES:
        raise InputError(f"unknown measure {measure!r}: choose one of {', '.join(MEASURES)}")
    if bm25 is None and dense is None:
        raise InputError("the index has neither a BM25 nor a dense retriever: there is nothing to tune")
    if not any(len(rows) for rows in relevant):
        raise InputError("no query has a relevant document: check that the qrels name these queries")
    for name, ranking in (("BM25", bm25), ("dense", dense)):
        if ranking is not None and len(ranking[0]) != len(relevant):
            raise InputError(f"{len(relevant)} judged queries but {len(ranking[0])} {name} answers")


def _evaluate(rows: npt.NDArray[np.int64], relevant: Sequence[Sequence[int]]) -> dict[str, Float64Array]:
    """Return the values [Q] of every measure for one ranking `rows` [Q, k]."""
    hits = find_relevant(rows, relevant)
    counts = np.array([len(r) for r in relevant], dtype=np.float64)
    return {name: measure(hits, counts) for name, measure in MEASURES.items()}


def find_relevant(rows: npt.NDArray[np.int64], relevant: Sequence[Sequence[int]]) -> BoolArray:
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


def _choose(candidates: Sequence[SearchSetting], values: Sequence[Float64Array]) -> tuple[int, str]:
    """Return the index of the chosen candidate and the reason."""
    means = [round(float(v.mean()), 12) for v in values]  # so that a tie is not decided by the last bit
    singles = [i for i, c in enumerate(candidates) if c.mode != "hybrid"]
    single = max(singles, key=means.__getitem__)  # max takes the first of equals
    best = max(range(len(means)), key=means.__getitem__)
    name = candidates[single].mode
    if len(singles) == 1:
        return single, f"{name} is the only retriever of the index"
    if best == single:
        return single, f"{name} alone is best: no hybrid is ahead of it"
    lead, error = _lead(values[best], values[single])
    figures = f"the best hybrid leads {name} by {lead:.4f}, standard error {error:.4f}"
    if lead > CERTAINTY * error:
        return best, f"{figures}: clearly ahead"
    return single, f"{figures}: not {CERTAINTY:g} standard errors, so {name} alone is kept"


def _lead(ahead: Float64Array, behind: Float64Array) -> tuple[float, float]:
    """Return the mean of the paired differences of two [Q] and its standard error (infinite for a single query)."""
    difference = ahead - behind
    if len(difference) < 2:
        return float(difference.mean()), math.inf
    return float(difference.mean()), float(difference.std(ddof=1) / math.sqrt(len(difference)))
