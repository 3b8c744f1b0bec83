"""The learned ranker: orders the candidates of a query, and says how likely each of them is the link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from indexes.dtypes import AnyArray, BoolArray, Float64Array, Int64Array
from linker.errors import InputError
from linker.ranking.calibration import Calibration
from linker.ranking.candidates import Pool, PoolSettings
from linker.ranking.forest import Forest
from linker.ranking.groups import names_of, with_group

BATCH = 256  # queries described at a time


@dataclass(frozen=True)
class Ranked:
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
    With a `blend` above 0, the score is the z-score of the trees' within the query, plus `blend` times BM25's.
    """

    pool: PoolSettings
    names: tuple[str, ...]
    forest: Forest
    calibration: Calibration
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
    def _used(self) -> Int64Array:
        """The places of the trees' features among those of a group."""
        places = {name: place for place, name in enumerate(names_of(self.names))}
        return np.array([places[name] for name in self.forest.names], dtype=np.int64)

    def inputs(self, pool: Pool) -> AnyArray:
        """Return the trees' features of all candidates of a pool, float32 [candidates, features]."""
        grouped = with_group(self._known(pool), pool.valid, self.names)
        return np.asarray(grouped[pool.valid][:, self._used])

    def rank(self, pool: Pool) -> Ranked:
        """Return the candidates of a pool in the ranker's order; equal scores keep the order of the pool.

        Raises InputError where the pool lacks a feature.
        """
        scores = self.scores(pool)
        finite = np.where(pool.valid, scores, 0)
        links, none = self.calibration.probabilities(finite, pool.valid, self._known(pool), self.names)
        order = np.argsort(-scores, axis=1, kind="stable")
        rows = np.take_along_axis(pool.rows, order, 1)
        return Ranked(rows, np.take_along_axis(scores, order, 1), np.take_along_axis(links, order, 1), none)

    def scores(self, pool: Pool) -> Float64Array:
        """Return the scores of a pool's candidates, float64 [n, c], −inf where there is none."""
        scores = np.full(pool.rows.shape, -np.inf)
        scores[pool.valid] = self.forest.scores(self.inputs(pool))
        return blended(scores, pool, self.blend) if self.blend else scores

    def _known(self, pool: Pool) -> AnyArray:
        """Return the features `names` of a pool, float32 [n, c, names]."""
        if pool.names == self.names:
            return pool.features
        if missing := [name for name in self.names if name not in pool.names]:
            raise InputError(
                f"the ranker needs the feature {missing[0]!r}, which this index cannot give: "
                "name the index that it was trained on, or train one for this index"
            )
        return pool.features[:, :, [pool.names.index(name) for name in self.names]]


def blended(scores: Float64Array, pool: Pool, blend: float) -> Float64Array:
    """Return z(scores) + `blend` · z(BM25) over the candidates of each query, −inf where there is none."""
    bm25 = np.where(pool.valid, pool.features[:, :, pool.names.index("bm25")], -np.inf)
    return np.where(pool.valid, zscores(scores, pool.valid) + blend * zscores(bm25, pool.valid), -np.inf)


def zscores(values: AnyArray, valid: BoolArray) -> Float64Array:
    """Return the z-scores of `values` [n, c] among the `valid` of each line; 0 where all are equal, and elsewhere."""
    count = np.maximum(valid.sum(axis=1, keepdims=True), 1)
    known = np.where(valid, values, 0).astype(np.float64)
    centred = np.where(valid, known - known.sum(axis=1, keepdims=True) / count, 0)
    spread = np.sqrt((centred**2).sum(axis=1, keepdims=True) / count)
    return np.asarray(np.where(spread > 1e-9, centred / np.maximum(spread, 1e-9), 0.0))


def contributions(ranker: Ranker, pool: Pool, top: int) -> Sequence[Mapping[str, float]]:
    """Return for each candidate of one query, in the pool's order, the `top` features that moved its score."""
    values = ranker.forest.contributions(ranker.inputs(pool))[:, :-1]
    names = ranker.forest.names
    return [
        {names[i]: float(line[i]) for i in np.argsort(-np.abs(line), kind="stable")[:top] if line[i]}
        for line in values
    ]
