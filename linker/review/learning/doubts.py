"""Verdicts that are probably wrong and therefore deserve another look.

A document's verdicts, the first one and those of later looks, are taken to err independently, all at one rate (Dawid &
Skene, 1979); the evidence of its text is a sigmoid of its score by a model that has not seen its verdict (Raykar et
al., 2010). The rate and the sigmoid are fitted together with the probabilities: each look that overturns a verdict
makes the others less certain, and looks that uphold verdicts shorten the list until it is empty.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import BoolArray, Float64Array
from linker.review.interface import Judgement
from linker.scoring.probability import logistic

LOOKS = ("second look", "third look")  # tags of a verdict, one for each time it was checked again
CHANGED = ", changed"  # suffix of the tag if that look changed the verdict
# no more looks if the expected share of wrong verdicts among the documents found is at most this
WRONG = 0.02
MISSED = 0.25  # a document judged irrelevant is listed if its probability is higher than this
LEAST = 5  # minimum number of relevant documents, and of others, for probabilities
PRIOR = 3.0, 60.0  # prior of the error rate: 3 wrong verdicts among 60
ROUNDS = 15
CERTAIN = 1e-6  # probabilities are at least this far from 0 and 1


@dataclass(frozen=True, slots=True)
class Doubt:
    """A verdict, and the probability that its document is relevant given all verdicts."""

    judgement: Judgement
    probability: float


def looked(tags: Iterable[str], *, changed: bool) -> tuple[str, ...]:
    """Return a verdict's tags after it was checked once more and, if `changed`, overturned."""
    tags = tuple(tags)
    count = _looks(tags)
    return tags if count == len(LOOKS) else (*tags, LOOKS[count] + CHANGED * changed)


def verdicts(judgement: Judgement) -> list[bool]:
    """Return whether each verdict on a document was "relevant", the standing one first."""
    said = [judgement.relevant]
    for look in LOOKS[::-1]:
        if look + CHANGED in judgement.tags:
            said.append(not said[-1])
        elif look in judgement.tags:
            said.append(said[-1])
    return said


def _looks(tags: Sequence[str]) -> int:
    return sum(look in tags or look + CHANGED in tags for look in LOOKS)


def doubted(judged: Sequence[Judgement], scores: Mapping[tuple[str, str], float]) -> list[Doubt] | None:
    """Return the verdicts that deserve another look, those that are most probably wrong first; None if too few exist.

    These are, of the documents judged relevant, the least probable ones, until the expected share of wrong verdicts
    among the others is at most WRONG, and of the other documents, those with a probability above MISSED. A verdict that
    has had all LOOKS is not listed. `scores`: by seed and id, from a model that has not seen the verdict.
    """
    known = [j for j in judged if (j.seed, j.id) in scores]
    relevant = np.array([j.relevant for j in known], dtype=bool)
    if _is_few(relevant):
        return None
    votes = np.array([[sum(v), len(v) - sum(v)] for v in map(verdicts, known)], dtype=np.float64)
    p = probabilities(votes, np.array([scores[j.seed, j.id] for j in known]))
    wrong, is_open = np.where(relevant, 1 - p, p), np.array([_looks(j.tags) < len(LOOKS) for j in known])
    order = np.flatnonzero(relevant & is_open)
    order = order[np.argsort(wrong[order], kind="stable")]
    improbable = order[np.cumsum(wrong[order]) > WRONG * relevant.sum()]
    chosen = np.concatenate([improbable, np.flatnonzero(~relevant & is_open & (p > MISSED))])
    return [Doubt(known[n], float(p[n])) for n in chosen[np.argsort(-wrong[chosen], kind="stable")].tolist()]


def chances(
    judged: Sequence[Judgement], scores: Mapping[tuple[str, str], float]
) -> dict[tuple[str, str], float]:
    """Return P(relevant) of each scored document by seed and id (Platt, 1999); empty if too few are judged."""
    from scipy.special import expit

    known = [j for j in judged if (j.seed, j.id) in scores]
    labels = np.array([j.relevant for j in known], dtype=np.float64)
    if _is_few(labels):
        return {}
    fitted = _fitted(np.array([scores[j.seed, j.id] for j in known]), labels)
    return {(j.seed, j.id): float(p) for j, p in zip(known, expit(fitted), strict=True)}


def log_odds(p: float) -> float:
    """Return the log odds of a probability, which are finite even at 0 and 1."""
    p = min(max(p, CERTAIN), 1 - CERTAIN)
    return math.log(p / (1 - p))


def _is_few(labels: Float64Array | BoolArray) -> bool:
    return bool(min(labels.sum(), len(labels) - labels.sum()) < LEAST)


def probabilities(votes: Float64Array, scores: Float64Array) -> Float64Array:
    """Return P(relevant) of each document from its verdicts and its score [n].

    votes: how many of its verdicts were "relevant", and how many were not [n, 2]. Expectation maximisation; the error
    rate starts at one in twenty.
    """
    from scipy.special import expit

    lead, (wrong, count) = votes[:, 0] - votes[:, 1], PRIOR
    p = expit(lead * math.log(count / wrong - 1))
    for _ in range(ROUNDS):
        rate = ((1 - p) @ votes[:, 0] + p @ votes[:, 1] + wrong) / (votes.sum() + count)
        p = expit(_fitted(scores, p) + lead * math.log(1 / rate - 1))
    return np.asarray(p)


def _fitted(scores: Float64Array, p: Float64Array) -> Float64Array:
    """Return the log odds of relevance as a linear function of the scores, fitted to probabilities p.

    A document counts as relevant with weight p and as irrelevant with weight 1 − p, after Platt's correction (1999),
    which keeps both away from 0 and 1.
    """
    found, others = p.sum(), (1 - p).sum()
    target = p * (found + 1) / (found + 2) + (1 - p) / (others + 2)
    both: BoolArray = np.repeat([True, False], len(scores))
    weights = np.concatenate([target, 1 - target])
    scores = (scores - scores.mean()) / (scores.std() or 1.0)
    slope, offset = logistic.fit(np.tile(scores, 2)[:, None], both, 0.0, weights=weights)
    return np.asarray(slope * scores + offset)
