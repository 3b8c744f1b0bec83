"""Cutoffs for an answer: by P(link), by a promised precision, or by raw score."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from indexes.dtypes import BoolArray
from indexes.hybrid import Answer
from linker.base.errors import InputError
from linker.scoring.probability.promise import Promise


def by_probability(answer: Answer, threshold: float) -> Answer:
    """Return the hits whose P(link) is at least `threshold`. Raises InputError for an answer without probabilities."""
    return _cut(answer, [np.asarray(p >= threshold) for p in _probabilities(answer)])


def by_promise(answer: Answer, promise: Promise | None) -> Answer:
    """Return each query's first hit if its P(link) reaches a promise's threshold; nothing without a promise.

    A promise is about first hits, one per query, so others are never kept. Raises InputError as `by_probability` does.
    """
    threshold = promise.threshold if promise else np.inf
    return _cut(answer, [(p >= threshold) & (np.arange(len(p)) < 1) for p in _probabilities(answer)])


def by_score(answer: Answer, score: float) -> Answer:
    """Return the hits whose score is at least `score`."""
    return _cut(answer, [np.asarray(hits.scores >= score) for hits in answer.hits])


def _probabilities(answer: Answer) -> Sequence[np.ndarray]:
    if answer.probabilities is None:
        reason = "; ".join(answer.notes) or "the index has no calibration: fit one with `linker calibrate`"
        raise InputError(f"a threshold on P(link) needs probabilities: {reason}")
    return answer.probabilities


def _cut(answer: Answer, kept: Sequence[BoolArray]) -> Answer:
    return dataclasses.replace(answer, hits=[h.where(k) for h, k in zip(answer.hits, kept, strict=True)])
