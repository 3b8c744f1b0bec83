"""The learned ranker: orders the candidates of a query, and estimates how likely each of them is the link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from indexes.dtypes import AnyArray, Float64Array, Int64Array
from indexes.fusion import zscores
from linker.base.errors import InputError
from linker.scoring.ranking.calibration import ListCalibration
from linker.scoring.ranking.candidates import Pool, PoolSettings
from linker.scoring.ranking.forest import Forest
from linker.scoring.ranking.groups import names_of, with_group

BATCH = 256  # queries whose features are computed at a time
BLENDED = ("blend.bm25",)  # name of the contribution that a blend adds
EQUAL = 1e-9  # the scores of a query count as equal if their standard deviation is at most this


@dataclass(frozen=True)
class RankedCandidates:
    """The candidates of n queries, best first: rows (int64 [n, c], −1: none), scores and P(link) (float64 [n, c]).

    `none` (float64 [n]) is the probability that no candidate is relevant.
    """

    rows: Int64Array
    scores: Float64Array
    links: Float64Array
    none: Float64Array


@dataclass(frozen=True, eq=False)
class Ranker:
    """Trees over the features `names` of candidates, and the calibration of their scores.

    `encoder` is the fingerprint of the encoder that gave the cosines, or ""; `about` says how the ranker was trained.
    With a `blend` above 0, the score is the trees' z-score within the query, plus `blend` times BM25's z-score.
    """

    pool: PoolSettings
    names: tuple[str, ...]
    forest: Forest
    calibration: ListCalibration
    fingerprint: str = ""
    encoder: str = ""
    blend: float = 0.0
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = names_of(self.names)
        if unknown := [name for name in self.forest.names if name not in known]:
            raise InputError(
                f"the ranker's trees use {unknown[0]!r}, a feature of another version: train it again"
            )

    @cached_property
    def _positions(self) -> Int64Array:
        """The positions of the trees' features among those that `with_group` returns."""
        places = {name: place for place, name in enumerate(names_of(self.names))}
        return np.array([places[name] for name in self.forest.names], dtype=np.int64)

    def for_size_of(self, collection: Sized) -> Ranker:
        """Return the ranker for a collection of this size: itself, unless few documents change its probabilities.

        The documents are counted only if their number may matter, since a cluster counts them in a request.
        """
        before = self.calibration
        after = before.of_size(len(collection)) if before.few else before
        return self if after is before else replace(self, calibration=after)

    def inputs(self, pool: Pool) -> AnyArray:
        """Return the trees' features of all candidates of a pool, float32 [candidates, features]."""
        grouped = with_group(self._features_of(pool), pool.valid, self.names)
        return np.asarray(grouped[pool.valid][:, self._positions])

    def rank(self, pool: Pool) -> RankedCandidates:
        """Return a pool's candidates in the ranker's order. Raises InputError if the pool lacks a feature."""
        scores = self.scores(pool)
        finite = np.where(pool.valid, scores, 0)
        links, none = self.calibration.probabilities(finite, pool.valid, self._features_of(pool), self.names)
        order = np.argsort(-scores, axis=1, kind="stable")
        rows = np.take_along_axis(pool.rows, order, 1)
        return RankedCandidates(
            rows, np.take_along_axis(scores, order, 1), np.take_along_axis(links, order, 1), none
        )

    def scores(self, pool: Pool) -> Float64Array:
        """Return the scores of a pool's candidates, float64 [n, c], −inf where there is none."""
        scores = np.full(pool.rows.shape, -np.inf)
        for start in range(0, len(scores), BATCH):
            part = pool.part(slice(start, start + BATCH))
            scores[start : start + BATCH][part.valid] = self.forest.scores(self.inputs(part))
        return blend_with_bm25(scores, pool, self.blend) if self.blend else scores

    def _features_of(self, pool: Pool) -> AnyArray:
        if pool.names == self.names:
            return pool.features
        if missing := [name for name in self.names if name not in pool.names]:
            raise InputError(
                f"the ranker needs the feature {missing[0]!r}, which this index cannot give: "
                "name the index that it was trained on, or train one for this index"
            )
        return pool.features[:, :, [pool.names.index(name) for name in self.names]]


def blend_with_bm25(scores: Float64Array, pool: Pool, blend: float) -> Float64Array:
    """Return z(scores) + `blend` · z(BM25) over the candidates of each query, −inf where there is none."""
    bm25 = pool.features[:, :, pool.names.index("bm25")]
    # If all sums of leaves are equal, their deviation is only rounding error.
    trees, words = (zscores(values, pool.valid, least=EQUAL) for values in (scores, bm25))
    return np.where(pool.valid, trees + blend * words, -np.inf)


@dataclass(frozen=True)
class ScoreParts:
    """The parts of a candidate's score: start + the sum of `features` + rest.

    `start` is the same for all candidates of a query, `features` has the largest contributions by feature, largest
    first, and `rest` is the sum of the others.
    """

    start: float
    features: Mapping[str, float]
    rest: float


def contributions(ranker: Ranker, pool: Pool, top: int) -> list[ScoreParts]:
    """Return the contributions to each candidate's score for one query, in the pool's order, with `top` features.

    The z-score of a blend is linear in the scores of a query, and so are its contributions.
    """
    values = ranker.forest.contributions(ranker.inputs(pool))
    names = (*ranker.forest.names, *(BLENDED if ranker.blend else ()))
    if ranker.blend:
        scores, words = values.sum(axis=1), pool.features[0, pool.valid[0], pool.names.index("bm25")]
        spread = float(scores.std())
        values[:, -1] -= scores.mean()
        values = values / spread if spread > EQUAL else np.zeros_like(values)
        bm25 = ranker.blend * zscores(words[None], np.ones((1, len(words)), dtype=bool), least=EQUAL)[0]
        values = np.column_stack([values[:, :-1], bm25, values[:, -1]])
    return [_contributions(line[:-1], float(line[-1]), names, top) for line in values]


def _contributions(line: Float64Array, start: float, names: Sequence[str], top: int) -> ScoreParts:
    largest = [i for i in np.argsort(-np.abs(line), kind="stable")[:top].tolist() if line[i]]
    features = {names[i]: float(line[i]) for i in largest}
    return ScoreParts(start, features, float(line.sum()) - sum(features.values()))
