"""P(link) if pages may lack a counterpart: does the page have one, and if so, is it the first candidate?

P(right) = P(linked) · P(right | linked): two logistic regressions on features of the page's list and of its first
candidate. They are fitted on linked pages with out-of-fold features, once as they are and once without their targets.
The regression for P(linked) therefore assumes that half of the pages are linked. It is adjusted to any other share by
the method of Saerens, Latinne and Decaestecker (2002), which also estimates the share by EM from the probabilities of
the pages to link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, log_expit, logit, logsumexp

from indexes.dtypes import BoolArray, Float32Array, Float64Array, Int64Array
from linker.scoring.probability import logistic
from linker.scoring.probability.shares import estimate_share
from linker.scoring.ranking.linear import LinearRanker, inherit

EDGE = 1e-4  # probabilities are clipped to at least this distance from 0 and 1
CLIP = 4.0  # features are clipped to this many standard deviations
PENALTY, PENALTY_ALONE = 30.0, 10.0  # ridge penalty towards a prior, and towards zero
LIST = ("list.score", "list.gap", "list.rest", "list.competition")


@dataclass(frozen=True, eq=False)
class Verifier:
    """Two logistic regressions on standardised features; `linked` and `right` [f + 1]: weights, offset last."""

    names: tuple[str, ...]
    centre: Float64Array
    scale: Float64Array
    linked: Float64Array
    right: Float64Array

    def standard(self, features: Float64Array) -> Float64Array:
        """Return `features` [n, f] with mean 0 and deviation 1 on the lists it was fitted on, clipped."""
        return np.asarray(np.clip((features - self.centre) / self.scale, -CLIP, CLIP))

    def odds(self, features: Float64Array) -> Float64Array:
        """Return the log odds [n] that the pages with `features` [n, f] have a counterpart, at a share of ½."""
        return np.asarray(self.standard(features) @ self.linked[:-1] + self.linked[-1])

    def right_odds(self, features: Float64Array) -> Float64Array:
        """Return the log odds [n] that the first candidates of linked pages with `features` [n, f] are right."""
        return np.asarray(self.standard(features) @ self.right[:-1] + self.right[-1])

    def share(self, features: Float64Array) -> float:
        """Return the share of pages with a counterpart among the pages with `features` [n, f]."""
        return estimate_share(self.odds(features))

    def __call__(self, features: Float64Array, share: float) -> Float64Array:
        """Return the probabilities [n] that the first candidates are right, if `share` of the pages are linked."""
        linked = expit(self.odds(features) + logit(_inside(share)))
        return np.asarray(linked * expit(self.right_odds(features)))


class ThreeWay(Verifier):
    """A verifier of three kinds of first candidates: right, wrong for a linked page, and wrong for an unlinked page.

    `right` separates the first kind from the others, and `linked` separates the other two. Wrong candidates look much
    the same for both kinds of pages, so the log odds of a linked page level off where most first candidates are wrong.
    The straight line that `Verifier` fits to them is too flat where most are right.
    """

    @classmethod
    def fitted(
        cls, names: Sequence[str], linked: Float64Array, right: BoolArray, alone: Float64Array
    ) -> ThreeWay:
        """Fit a verifier like `fit_verifier`, shrunk towards zero, on as many lists with targets as without."""
        both, zeros = np.concatenate([linked, alone]), np.zeros(len(names) + 1)
        start = cls(tuple(names), both.mean(0), both.std(0) + 1e-6, zeros, zeros)
        z, known = start.standard(both), np.arange(len(both)) < len(linked)
        good = np.append(right, np.zeros(len(alone), bool))
        rest = _fit(z[~good], known[~good], logistic.RIDGE, zeros)
        return replace(start, linked=rest, right=_fit(z, good, logistic.RIDGE, zeros))

    def odds(self, features: Float64Array) -> Float64Array:
        """Return the log odds [n] that the pages with `features` [n, f] have a counterpart, if half of all pages
        do."""
        rest, right = super().odds(features), super().right_odds(features)
        return np.asarray(np.logaddexp(right + np.logaddexp(0, rest), rest))

    def right_odds(self, features: Float64Array) -> Float64Array:
        """Return the log odds [n] that the first candidates of linked pages with `features` [n, f] are right."""
        return np.asarray(super().right_odds(features) - log_expit(super().odds(features)))


def names_of(ranker: LinearRanker) -> tuple[str, ...]:
    """Return the names of the features of `first_candidates`."""
    return LIST + ranker.names


def first_candidates(
    ranker: LinearRanker, features: Float32Array, logits: Float64Array, won: Float64Array
) -> Float64Array:
    """Return the features [n, 4 + f] of each list and of its most probable candidate.

    `logits` [n, c + 1] are the ranker's scores of the lists with `features` [n, c, f], `won` [n, c + 1] the
    probabilities after competition. List features: the candidate's score, its distance to the next best and to all
    others together, and its probability. Then come the features of the candidate, standardised as in the ranker.
    """
    n = np.arange(len(logits))
    top = won[:, :-1].argmax(axis=1)
    scores = logits[:, :-1].copy()
    score, p = scores[n, top], won[n, top]
    scores[n, top] = -np.inf
    best = np.maximum(scores.max(axis=1, initial=-np.inf), -1 / EDGE)
    rest = np.maximum(logsumexp(scores, axis=1), -1 / EDGE)
    own = np.stack([score, score - best, score - rest, logit(_inside(p))], axis=1)
    return np.concatenate([own, ranker.standard(features[n, top])], axis=1)


def _inside(p: Float64Array | float) -> Float64Array:
    return np.asarray(np.clip(p, EDGE, 1 - EDGE))


def fit_calibrated(
    names: Sequence[str],
    pages: Sequence[Int64Array],
    linked: Sequence[Float64Array],
    right: Sequence[BoolArray],
    alone: Sequence[Float64Array],
    prior: Verifier | None = None,
    divisions: int = 1,
) -> tuple[Verifier, list[Verifier]]:
    """Return a verifier, and for each fold a verifier fitted without the pages of that fold.

    Each sequence holds one array per fold of each of the `divisions`, of at least two folds: `pages` has the fold's
    pages, and the other sequences are arguments of `fit_verifier`. A ridge makes log odds too small and many features
    make them too large, so Platt's (1999) slope and offset, fitted out of fold, rescale the log odds of all verifiers.
    """

    def fit(absent: Int64Array) -> Verifier:
        keep = [~np.isin(rows, absent) for rows in pages]
        parts = (
            np.concatenate([x[k] for x, k in zip(part, keep, strict=True)]) for part in (linked, right, alone)
        )
        return fit_verifier(names, *parts, prior=prior, times=divisions)

    checks = [fit(rows) for rows in pages]
    has = [np.full(len(x), known) for known, part in ((True, linked), (False, alone)) for x in part]
    odds = [c.odds(x) for part in (linked, alone) for c, x in zip(checks, part, strict=True)]
    firsts = [c.right_odds(x) for c, x in zip(checks, linked, strict=True)]
    first, second = (
        _fit(np.concatenate(x)[:, None], np.concatenate(y), 1.0, np.array([1.0, 0.0]), divisions)
        for x, y in ((odds, has), (firsts, right))
    )
    final, *checks = [
        replace(v, linked=_rescale(v.linked, *first), right=_rescale(v.right, *second))
        for v in (fit(np.empty(0, np.int64)), *checks)
    ]
    return final, checks


def _rescale(weights: Float64Array, slope: float, offset: float) -> Float64Array:
    return np.append(weights[:-1] * slope, weights[-1] * slope + offset)


def _fit(
    z: Float64Array, positive: BoolArray, penalty: float, prior: Float64Array, times: int = 1
) -> Float64Array:
    """Fit like `logistic.fit`, with an added positive and negative example at zero, so that nothing becomes certain.

    `times`: how often each page is among the examples; they are weighted so that each page counts once.
    """
    neutral = np.zeros((2 * times, z.shape[1]))
    labels = np.append(positive, [True, False] * times)
    return logistic.fit(np.concatenate([z, neutral]), labels, times * penalty, prior)


def fit_verifier(
    names: Sequence[str],
    linked: Float64Array,
    right: BoolArray,
    alone: Float64Array,
    *,
    prior: Verifier | None = None,
    penalty: float | None = None,
    times: int = 1,
) -> Verifier:
    """Return a verifier fitted on linked pages, both with and without their target among the candidates.

    `linked` and `alone` [n, f] are features of `names` from `first_candidates`; `right` [n] says whether the first
    candidates of `linked` are right. `penalty` is the ridge penalty, towards zero or the weights of a `prior`,
    whose standardisation is used as well. `times`: how often each page is among the examples.
    """
    if penalty is None:
        penalty = PENALTY if prior is not None else PENALTY_ALONE
    both = np.concatenate([linked, alone])
    start = Verifier(
        tuple(names), both.mean(0), both.std(0) + 1e-6, np.zeros(len(names) + 1), np.zeros(len(names) + 1)
    )
    if prior is not None:
        start = _towards(start, prior)
    z, has = start.standard(both), np.arange(len(both)) < len(linked)
    return replace(
        start,
        linked=_fit(z, has, penalty, start.linked, times),
        right=_fit(z[has], right, penalty, start.right, times),
    )


def _towards(start: Verifier, prior: Verifier) -> Verifier:
    """Return `prior` with the features of `start`; features that it lacks get weight 0."""
    values = inherit(start, prior, ("centre", "scale", "linked", "right"))
    values["linked"][-1], values["right"][-1] = prior.linked[-1], prior.right[-1]
    return Verifier(start.names, **values)
