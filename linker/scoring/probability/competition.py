"""Soft competition for documents: several texts may want a document, but it accepts only as many as its kind does.

Each text has an outside option, "no link". Each document has a price per text that rises while the texts' probabilities
of a link with it sum to more than its capacity (Sinkhorn's scaling, restricted to oversubscribed columns). The number
of texts that a document accepts (one, a few or any number) is learned from known links. Since the kind of a document is
unknown, its texts get the mean discount over the kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, Int64Array

Kind = Literal["none", "soft", "one-to-one", "relations"]
FEW = 3  # maximum number of texts of a document that accepts "a few"
ROUNDS = 10
OUTSIDE = float(np.log(1e-3))  # weight of "no link" in the competition, next to candidates that sum to one
SMOOTHING = 0.5  # pseudo-count of documents of each kind


@dataclass(frozen=True, slots=True)
class Capacity:
    """Shares of the documents that belong to `one` text, to `few` (at most FEW), and to `many`; their sum is 1."""

    one: float
    few: float = 0.0
    many: float = 0.0

    @classmethod
    def of(cls, counts: Int64Array) -> Capacity:
        """Return the smoothed shares among linked documents that have `counts` [m] texts each."""
        kinds = (counts <= 1, (counts > 1) & (counts <= FEW), counts > FEW)
        seen = [float(kind.sum()) + SMOOTHING for kind in kinds]
        return cls(*(value / sum(seen) for value in seen))


ONE, ANY = Capacity(1.0), Capacity(0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Lists:
    """Candidates of n texts: `documents` int64 [n, c], −1 for none, and `scores` float64 [n, c], −inf for none.

    The scores are log odds; `none` float64 [n] is P(no candidate is the link), considering the text alone.
    """

    documents: Int64Array
    scores: Float64Array
    none: Float64Array

    def __len__(self) -> int:
        return len(self.none)

    def at(self, rows: Int64Array | BoolArray) -> Lists:
        """Return the lists of some texts."""
        return Lists(self.documents[rows], self.scores[rows], self.none[rows])

    def logits(self) -> Float64Array:
        """Return the logits of the competition, float64 [n, c + 1]; the last is "no link"."""
        outside = np.full((len(self), 1), OUTSIDE)
        best = self.scores.max(axis=1, keepdims=True, initial=-1e300)
        total = np.log(np.maximum(np.exp(self.scores - best).sum(axis=1, keepdims=True), 1e-300))
        return np.concatenate([self.scores - best - total, outside], axis=1)


def join(first: Lists, second: Lists) -> Lists:
    """Return both sets of lists as one, padded to the same length."""
    width = max(first.documents.shape[1], second.documents.shape[1])

    def padded(values: Any, with_: float) -> Any:
        return np.pad(values, [(0, 0), (0, width - values.shape[1])], constant_values=with_)

    documents = [padded(part.documents, -1) for part in (first, second)]
    scores = [padded(part.scores, -np.inf) for part in (first, second)]
    return Lists(np.concatenate(documents), np.concatenate(scores), np.concatenate([first.none, second.none]))


def softmax(logits: Float64Array) -> Float64Array:
    """Return the softmax of `logits` [..., c] along the last axis: float64 [..., c]."""
    from scipy.special import logsumexp

    return np.asarray(np.exp(logits - logsumexp(logits, axis=-1, keepdims=True)))


def compete(
    logits: Float64Array,
    targets: Int64Array,
    capacity: Capacity = ONE,
    taken: Int64Array | None = None,
    rounds: int = ROUNDS,
) -> Float64Array:
    """Return the probabilities [n, c + 1] of n texts after competition for documents.

    `logits` [n, c + 1], the last column for "no link", −inf where there is no candidate; `targets` [n, c], the
    documents; `taken` [t], the document of each known link.
    """
    probabilities = softmax(logits)
    if capacity == ANY:
        return probabilities
    unique, column = np.unique(targets, return_inverse=True)
    column = column.reshape(targets.shape)
    used = _counts(unique, taken)
    kinds = [(share, size - used) for share, size in ((capacity.one, 1), (capacity.few, FEW)) if share > 0]
    prices = np.zeros((len(kinds), len(unique)))
    discount = _discount(prices, kinds, capacity.many)
    for _ in range(rounds):
        probabilities = softmax(_apply(logits, discount[column]))
        for price, (_, room) in zip(prices, kinds, strict=True):
            # The texts' demand for a document, assuming that it is of this kind.
            with np.errstate(over="ignore", invalid="ignore"):
                factor = np.exp(np.minimum(-price - discount, 700))[column]
                claims = probabilities[:, :-1] * factor / (1 + probabilities[:, :-1] * (factor - 1))
            demand = np.bincount(column.ravel(), np.nan_to_num(claims).ravel(), len(unique))
            price[:] = np.maximum(0, price + np.log(np.maximum(demand, 1e-9) / np.maximum(room, 1)))
        discount = _discount(prices, kinds, capacity.many)
    return softmax(_apply(logits, discount[column]))


def spread(won: Float64Array, first: Float64Array) -> Float64Array:
    """Return `won` [n, c + 1] with the probability of each row's most probable candidate changed to `first` [n].

    The others keep their proportion to it as long as the sum is at most one; "no link" gets the rest.
    """
    n, top = np.arange(len(won)), won[:, :-1].argmax(axis=1)
    out = won[:, :-1] / np.maximum(won[n, top], 1e-300)[:, None] * first[:, None]
    out[n, top] = 0
    out *= np.minimum(1, (1 - first) / np.maximum(out.sum(axis=1), 1e-12))[:, None]
    out[n, top] = first
    return np.concatenate([out, np.maximum(0, 1 - out.sum(axis=1, keepdims=True))], axis=1)


def _counts(unique: Int64Array, taken: Int64Array | None) -> Int64Array:
    """Return how many of the links to `taken` [t] each of the documents `unique` [u] has: int64 [u]."""
    if taken is None or not len(taken) or not len(unique):
        return np.zeros(len(unique), np.int64)
    position = np.minimum(np.searchsorted(unique, taken), len(unique) - 1)
    return np.bincount(position[unique[position] == taken], minlength=len(unique))


def _discount(prices: Float64Array, kinds: Sequence[tuple[float, Int64Array]], many: float) -> Float64Array:
    """Return the logarithm of the factor by which a text's odds of each document fall, float64 [u]."""
    with np.errstate(divide="ignore"):
        parts = [
            np.where(room > 0, np.log(share) - price, -np.inf)
            for price, (share, room) in zip(prices, kinds, strict=True)
        ]
        return np.asarray(
            np.logaddexp.reduce([*parts, np.full(prices.shape[1], np.log(many))] if many else parts)
        )


def _apply(logits: Float64Array, discount: Float64Array) -> Float64Array:
    out = logits.copy()
    out[:, :-1] += discount
    return out
