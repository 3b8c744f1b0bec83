"""From a ranker's scores to the probabilities that no candidate is relevant, and that each candidate is the link.

P(none) is a logistic regression on how a query's best candidate stands out; the rest is divided among the candidates by
a softmax of their scores, so that the probabilities of a query add up to one. Both are fitted on out-of-fold scores:
P(none) on all queries, including those whose relevant document is not a candidate, and again on each query with its
relevant documents hidden, since few judged queries show what absence looks like. P(none) is then adapted to the share
of queries with a match: that of the judged queries or, for a batch of many queries, their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from indexes.dtypes import BoolArray, Float32Array, Float64Array
from linker.scoring.probability import logistic
from linker.scoring.probability.shares import adapt, estimate_share, evidence_of

# Features of the best candidate that indicate whether it is relevant at all, if the ranker has them.
# Either coverage alone (of the query by the candidate, or the reverse) would depend on the lengths of both.
SEEN = (
    "coverage",
    "mass_share",
    "sentence",
    "beginning",
    "likelihood",
    "missing_idf",
    "run_weight",
    "cosine",
    "days_wrong",
)
STEEPEST = 20.0
LARGE = 3000  # in a collection of at least this many documents, `ListCalibration.few` is not used


@dataclass(frozen=True)
class ListCalibration:
    """`slope` of the softmax; `weights` (one per input, then the offset), `centre` and `scale` of P(none).

    P(none) assumes that the share `linked` of queries has a match; None for older rankers, which do not record it.
    `few` is added to the weights for each factor e by which a collection is smaller than LARGE; nothing if it is empty.
    """

    inputs: tuple[str, ...]
    slope: float
    weights: tuple[float, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    linked: float | None = None
    few: tuple[float, ...] = ()

    def of_size(self, documents: int) -> ListCalibration:
        """Return the calibration for a collection with this number of documents.

        Among c candidates no z-score exceeds √(c − 1), and no word is rare, so that the best of few stands out less;
        but fewer wrong documents resemble a query by chance.
        """
        if not self.few or documents >= LARGE:
            return self
        smaller = math.log(LARGE / max(documents, 1))
        weights = (w + smaller * change for w, change in zip(self.weights, self.few, strict=True))
        return replace(self, weights=tuple(weights), few=())

    def probabilities(
        self, scores: Float64Array, valid: BoolArray, features: Float32Array, names: Sequence[str]
    ) -> tuple[Float64Array, Float64Array]:
        """Return P(link) of each candidate, float64 [n, c], and P(none) of each query, float64 [n].

        `scores` [n, c], `valid` [n, c] and `features` [n, c, names] describe the candidates. A query without
        candidates has P(none) = 1.
        """
        from scipy.special import expit

        x = (inputs(scores, valid, features, names, self.inputs) - self.centre) / self.scale
        none = expit(x @ np.array(self.weights[:-1]) + self.weights[-1])
        none = np.where(valid.any(axis=1), none, 1.0)
        logits = np.where(valid, self.slope * scores, -np.inf)
        best = logits.max(axis=1, keepdims=True, initial=-np.inf)
        shares = np.exp(logits - np.where(np.isfinite(best), best, 0))
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return shares * (1 - none)[:, None], none

    def together(self, none: Float64Array, share: float | None = None) -> Float64Array:
        """Return P(none) [n] of queries that belong together, adapted to the `share` of them that has a match.

        If the share is not known, it is estimated from their P(none). A single query keeps its P(none), as does a query
        without candidates.
        """
        if self.linked is None:
            return none
        return np.where(none < 1, 1 - adapt(1 - none, self.linked, share), 1.0)

    def share(self, none: Float64Array) -> float | None:
        """Return the share of queries with a match, given their P(none) [n]; None for older rankers."""
        return (
            None if self.linked is None else estimate_share(evidence_of(1 - none, self.linked), self.linked)
        )


def inputs(
    scores: Float64Array,
    valid: BoolArray,
    features: Float32Array,
    names: Sequence[str],
    wanted: Sequence[str],
) -> Float64Array:
    """Return the inputs of P(none), float64 [n, wanted]: "best", "lead", and features of the best candidate."""
    masked = np.where(valid, scores, -np.inf)
    ordered = np.sort(masked, axis=1)[:, ::-1]
    first = ordered[:, 0]
    second = ordered[:, min(1, ordered.shape[1] - 1)]
    top = features[np.arange(len(features)), masked.argmax(axis=1)]
    best = np.where(np.isfinite(first), first, 0)
    known = {"best": best, "lead": np.where(np.isfinite(second), best - np.nan_to_num(second), 0)}
    return np.stack([known[n] if n in known else top[:, names.index(n)] for n in wanted], axis=1).astype(
        np.float64
    )


def fit(
    scores: Float64Array,
    hidden: Float64Array,
    valid: BoolArray,
    relevant: BoolArray,
    features: Float32Array,
    names: Sequence[str],
    share: float | None = None,
) -> ListCalibration:
    """Fit both parts on out-of-fold `scores` [n, c], given which candidates are `relevant` (bool [n, c]).

    `hidden` [n, c]: the scores that the other candidates get when the relevant ones are not candidates. `share`: the
    share of queries with a match that P(none) assumes; by default, that of these queries.
    """
    from scipy.special import logit

    wanted = ("best", "lead", *(name for name in SEEN if name in names))
    has: BoolArray = np.asarray(relevant.any(axis=1))
    others = valid & ~relevant
    known = inputs(scores, valid, features, names, wanted)
    x = np.concatenate([known, inputs(hidden, others, features, names, wanted)[has & others.any(axis=1)]])
    centre, scale = x.mean(axis=0), x.std(axis=0) + 1e-6
    match = np.append(has, np.zeros(len(x) - len(has), dtype=bool))
    weights = logistic.fit((x - centre) / scale, ~match)
    judged_share, fitted_share = ((has.sum() + 1) / (len(each) + 2) for each in (has, match))
    linked = judged_share if share is None else share
    weights[-1] += logit(fitted_share) - logit(linked)
    slope = slope_of(np.where(valid, scores, -np.inf), relevant)
    a, b, c = (tuple(map(float, part)) for part in (weights, centre, scale))
    return ListCalibration(wanted, slope, a, b, c, float(linked))


def slope_of(scores: Float64Array, relevant: BoolArray, steepest: float = STEEPEST) -> float:
    """Return the factor of `scores` [n, c] (−∞: none) that makes the relevant candidates most likely; 1 if none is."""
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    has = relevant.any(axis=1)
    logits, right = scores[has], relevant[has]

    def surprise(slope: float) -> float:
        scaled = slope * logits
        return float((logsumexp(scaled, axis=1) - logsumexp(np.where(right, scaled, -np.inf), axis=1)).sum())

    return float(minimize_scalar(surprise, bounds=(1e-3, steepest), method="bounded").x) if has.any() else 1.0
