"""Precision and recall of a ranking at every threshold, according to reviewers' decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from indexes.dtypes import Float64Array

if TYPE_CHECKING:
    from linker.engine.engine import Engine
    from linker.review.interface import Seed

DEPTH, LEAST = 10_000, 200  # maximum number of hits examined per seed, with few seeds and with very many
TOTAL = 200_000  # maximum number of hits of all seeds together, unless that is less than LEAST each
BATCH = 16  # seeds per search


@dataclass(frozen=True, slots=True)
class Point:
    """The documents scoring at least `threshold`: how many were judged, and their precision and recall."""

    threshold: float
    judged: int
    relevant: int
    precision: float
    recall: float


def points(scores: Sequence[float], relevant: Sequence[bool]) -> list[Point]:
    """Return one point per distinct score, the highest first; documents without a score (NaN) rank below all others.

    Recall counts all relevant documents, including those without a score. Empty if none is relevant.
    """
    values, hits = np.asarray(scores, np.float64), np.asarray(relevant, bool)
    whole = int(hits.sum())
    known = ~np.isnan(values)
    order = np.argsort(-values[known], kind="stable")
    values, hits = values[known][order], hits[known][order]
    if not whole or not len(values):
        return []
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], True))  # the last document of each score
    found = np.cumsum(hits)[ends]
    return [
        Point(float(values[end]), int(end) + 1, int(count), float(count / (end + 1)), float(count / whole))
        for end, count in zip(ends, found, strict=True)
    ]


def scores(
    engine: Engine, seeds: Sequence[Seed], decided: Mapping[tuple[str, str], bool], *, by_document: bool
) -> tuple[Float64Array, bool]:
    """Return the score of each decided pair [n] in a search with its seed, and whether the scores are P(link).

    `by_document`: the document's best score with any of the seeds, which describe one topic. Only seeds with decisions
    are searched for, `DEPTH` hits deep, less with many seeds. The score is NaN if the search does not find the
    document.
    """
    seed_ids = {seed for seed, _ in decided}
    seeds = [seed for seed in seeds if seed.id in seed_ids]
    depth = max(1, min(DEPTH, max(LEAST, TOTAL // max(1, len(seeds))), len(engine)))
    best: dict[tuple[str, str], float] = {}
    calibrated = bool(seeds)
    ids = {id_ for _, id_ in decided}
    for start in range(0, len(seeds), BATCH):
        part = seeds[start : start + BATCH]
        answer = engine.search([seed.full_text for seed in part], depth)
        calibrated = calibrated and answer.probabilities is not None
        for seed, hits in zip(part, answer.hits, strict=True):
            values = hits.scores if hits.probabilities is None else hits.probabilities
            for id_, value in zip(hits.ids, values.tolist(), strict=True):
                if id_ in ids:
                    key = ("" if by_document else seed.id, id_)
                    best[key] = max(value, best.get(key, value))
    pairs = (("" if by_document else seed, id_) for seed, id_ in decided)
    return np.array([best.get(pair, np.nan) for pair in pairs]), calibrated
