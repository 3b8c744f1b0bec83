"""Verdicts that the model finds improbable and that therefore deserve a second look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import BoolArray, Float64Array
from linker.review.interface import Judgement
from linker.scoring.probability import logistic

LOOKED = "second look"  # tag of a verdict that was checked again
SHARE = 0.05  # maximum share of the verdicts
LEAST = 5  # minimum relevant documents, and others, for probabilities


@dataclass(frozen=True, slots=True)
class Doubt:
    """A verdict, and the probability that its document is relevant given everything but this verdict."""

    judgement: Judgement
    probability: float


def doubted(judged: list[Judgement], chances: Mapping[tuple[str, str], float]) -> list[Doubt]:
    """Return relevant documents with a low probability and others with a high one, least probable verdicts first.

    chances: by seed and id. At most SHARE of the verdicts; none that has had its second look.
    """
    found = [
        Doubt(j, chances[j.seed, j.id]) for j in judged if (j.seed, j.id) in chances and LOOKED not in j.tags
    ]
    improbable = [d for d in found if (d.probability < 0.5) == d.judgement.relevant and d.probability != 0.5]
    improbable.sort(key=lambda d: -abs(d.probability - 0.5))
    return improbable[: int(SHARE * len(judged))]


def probabilities(scored: Mapping[str, tuple[bool, float]]) -> dict[str, float]:
    """Return P(relevant) of each document by its label and score (Platt, 1999); empty if too few are known."""
    labels = np.array([label for label, _ in scored.values()], dtype=bool)
    if min(labels.sum(), (~labels).sum()) < LEAST:
        return {}
    scores = np.array([score for _, score in scored.values()])
    values = _platt((scores - scores.mean()) / (scores.std() or 1.0), labels)
    return dict(zip(scored, values.tolist(), strict=True))


def _platt(scores: Float64Array, labels: BoolArray) -> Float64Array:
    """Return probabilities from a sigmoid of the scores; Platt's prior keeps its targets away from 0 and 1.

    A target t is an example that is positive with weight t, and negative with weight 1 − t.
    """
    from scipy.special import expit

    positive, negative = labels.sum(), (~labels).sum()
    target = np.where(labels, (positive + 1) / (positive + 2), 1 / (negative + 2))
    both = np.repeat([True, False], len(scores))
    weights = np.concatenate([target, 1 - target])
    slope, offset = logistic.fit(np.tile(scores, 2)[:, None], both, 0.0, weights=weights)
    return np.asarray(expit(slope * scores + offset))
