"""Fusion: several rankings of the same documents become one.

A side is a `Ranking`: rows int64 [Q, k_s] and scores float32 [Q, k_s], best first, filled at the end with
row −1 and score −inf; a row occurs at most once in a side's answer. A document's fused score is the weighted
sum, over the sides, of what the side gives it:

- "rrf": 1 / (k + rank), ranks from 1. Cormack, Clarke & Büttcher, SIGIR 2009.
- "minmax": (s − min) / (max − min) over the side's answer to that query. The top hit always gets 1, however
  weak it is, and the last hit 0; a side whose scores are all equal gives 1, so a lone hit still counts.
  Lee, SIGIR 1997.
- "max": s / max |s|: keeps the ratios between scores, so a long tail close to the top stays close.
- "zscore": (s − mean) / standard deviation over the side's answer; 0 where all scores are equal, so a lone
  hit says nothing. Montague & Aslam, CIKM 2001.

What a side gives to a document it did not answer is one rule for all four: 0, or the lowest that it gave to
that query where this is negative. So absence is never better than presence, and a side without an answer gives
every document 0. A side of weight 0 takes no part: its documents do not enter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from indexes.interface import Hits, IndexesError, Mask, RowArray, ScoreArray

Method: TypeAlias = Literal["rrf", "minmax", "max", "zscore"]
Ranking: TypeAlias = tuple[RowArray, ScoreArray]
Gains: TypeAlias = npt.NDArray[np.float64]

BLOCK = 256  # queries worked on at once, so that the block's arrays stay in the cache


class BadFusionError(IndexesError, ValueError):
    """The settings of a fusion cannot be used, or do not fit the sides."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """How rankings are fused: a method, one weight a side, and the k of reciprocal rank fusion.

    The default is for BM25 and dense, in this order, 100 candidates each, before anything was tuned. It was chosen
    on dev queries of statements, tweets and headlines with weak (mean word vectors) and strong (MiniLM) dense
    sides: it led the better side alone everywhere, where equal reciprocal ranks let a weak side cost up to .16 of
    mean reciprocal rank (benchmarks/results/default_fusion.json).
    """

    method: Method = "zscore"
    weights: tuple[float, ...] = (0.6, 0.4)
    k: int = 60

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            known = ", ".join(get_args(Method))
            raise BadFusionError(f"unknown fusion method {self.method!r}: choose one of {known}")
        if not all(_is_number(w) and math.isfinite(w) and w >= 0 for w in self.weights):
            raise BadFusionError(f"fusion weights {self.weights} must be finite numbers, none negative")
        if not any(self.weights):
            raise BadFusionError(f"fusion weights {self.weights}: at least one must be positive")
        if not isinstance(self.k, int) or isinstance(self.k, bool) or self.k < 0:
            raise BadFusionError(f"fusion k {self.k!r} must be an integer, 0 or more")

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return {"method": self.method, "weights": list(self.weights), "k": self.k}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Fusion:
        """Read what `to_json` wrote; raise BadFusionError on anything else."""
        if not isinstance(values, Mapping) or set(values) != {"method", "weights", "k"}:
            raise BadFusionError(
                f"cannot read the fusion {values!r}: it needs method, weights and k, no more"
            )
        if not isinstance(values["weights"], list):
            raise BadFusionError(f"fusion weights {values['weights']!r} must be a list of numbers")
        return cls(values["method"], tuple(values["weights"]), values["k"])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def fuse(sides: Sequence[Ranking], fusion: Fusion, k: int) -> Ranking:
    """Return the best k of each query: rows and scores [Q, k], equal (float32) scores by ascending row.

    Sides may have different widths, not different numbers of queries. Raises BadFusionError.
    """
    _check(sides, fusion, k)
    parts = [(*side, w) for side, w in zip(sides, fusion.weights, strict=True) if w]
    queries = len(sides[0][0])
    rows = np.full((queries, k), -1, dtype=np.int64)
    scores = np.full((queries, k), -np.inf, dtype=np.float32)
    for start in range(0, queries, BLOCK):
        block = slice(start, start + BLOCK)
        best, fused = _fuse_block([(r[block], s[block], w) for r, s, w in parts], fusion, k)
        rows[block, : best.shape[1]], scores[block, : best.shape[1]] = best, fused
    return rows, scores


def _check(sides: Sequence[Ranking], fusion: Fusion, k: int) -> None:
    if len(sides) != len(fusion.weights):
        raise BadFusionError(f"{len(sides)} rankings but {len(fusion.weights)} fusion weights")
    if k < 1:
        raise BadFusionError(f"cannot return the best {k}: ask for 1 or more")
    shapes = [array.shape for side in sides for array in side]
    if len({shape[0] for shape in shapes}) != 1 or shapes[::2] != shapes[1::2]:
        raise BadFusionError(f"rankings do not fit together: rows and scores have shapes {shapes}")


def _fuse_block(parts: Sequence[tuple[RowArray, ScoreArray, float]], fusion: Fusion, k: int) -> Ranking:
    """Fuse a few queries: give each (query, side, rank) its gain, add up by row, take the best."""
    gains, base = [], np.zeros((len(parts[0][0]), 1))
    for rows, scores, weight in parts:
        present = rows >= 0
        gain = _gain(scores, present, fusion)
        lowest = np.min(gain, axis=1, keepdims=True, where=present, initial=0.0)
        gains.append(weight * (gain - lowest))
        base += weight * lowest
    merged, totals = _add_up(
        np.concatenate([p[0] for p in parts], axis=1), np.concatenate(gains, axis=1), len(parts)
    )
    return _best(merged, totals + base, k)


def _gain(scores: ScoreArray, present: Mask, fusion: Fusion) -> Gains:
    """Return what one side gives to the documents it answered, [Q, k_s]; anything where nothing is present."""
    if fusion.method == "rrf":
        ranks = np.arange(1, scores.shape[1] + 1, dtype=np.float64)
        return np.broadcast_to(1.0 / (fusion.k + ranks), scores.shape)
    wide = np.where(present, scores, 0.0).astype(np.float64)
    count = np.maximum(present.sum(axis=1, keepdims=True), 1)
    if fusion.method == "max":
        return _ratio(wide, np.abs(wide).max(axis=1, keepdims=True, initial=0.0), 0.0)
    if fusion.method == "zscore":
        centred = np.where(present, wide - wide.sum(axis=1, keepdims=True) / count, 0.0)
        return _ratio(centred, np.sqrt((centred**2).sum(axis=1, keepdims=True) / count), 0.0)
    low = np.min(wide, axis=1, keepdims=True, where=present, initial=np.inf)
    high = np.max(wide, axis=1, keepdims=True, where=present, initial=-np.inf)
    return _ratio(wide - low, high - low, 1.0)


def _ratio(values: Gains, by: Gains, otherwise: float) -> Gains:
    """Return values [Q, k] / by [Q, 1], and `otherwise` in the rows where `by` is not positive."""
    out = np.full(values.shape, otherwise)
    np.divide(values, by, out=out, where=by > 0)
    return out


def _add_up(rows: RowArray, gains: Gains, sides: int) -> tuple[RowArray, Gains]:
    """Sort each query's rows ascending and add the gains of equal rows onto the first of them.

    Returns rows and totals [Q, n]; the total is −inf for a repeated row and for padding. The place is packed
    into the low bits of the sort key, since sorting integers is several times faster than argsort.
    """
    width = rows.shape[1]
    bits = width.bit_length()
    nothing = (1 << (62 - bits)) - 1  # stands for padding: sorts behind every row
    if int(rows.max(initial=0)) >= nothing:
        raise BadFusionError(f"row number {rows.max()} is too large to fuse")
    keys = (np.where(rows < 0, nothing, rows) << bits) | np.arange(width)
    keys.sort(axis=1)
    places = keys & ((1 << bits) - 1)
    gains = np.take_along_axis(gains, places, axis=1)
    rows = keys >> bits
    totals = gains.copy()
    for shift in range(1, sides):
        totals[:, :-shift] += np.where(rows[:, shift:] == rows[:, :-shift], gains[:, shift:], 0.0)
    totals[:, 1:][rows[:, 1:] == rows[:, :-1]] = -np.inf
    totals[rows == nothing] = -np.inf
    return rows, totals


def _best(rows: RowArray, totals: Gains, k: int) -> Ranking:
    """Return the best min(k, n) of rows [Q, n], ascending in each query, by total.

    Totals are rounded to float32 before they are compared, so the order agrees with the scores given out.
    """
    scores = totals.astype(np.float32) + np.float32(0.0)  # + 0 turns −0 into 0
    order = scores.view(np.int32)
    # A float's bits, read as an integer, keep the order once a negative one's magnitude is turned round.
    descending = ~np.where(order < 0, order ^ 0x7FFFFFFF, order)
    keys = (descending.astype(np.int64) << 32) | np.arange(rows.shape[1])
    if k < rows.shape[1]:
        keys = np.partition(keys, k - 1, axis=1)[:, :k]
    keys.sort(axis=1)
    places = keys & 0xFFFFFFFF
    scores = np.take_along_axis(scores, places, axis=1)
    return np.where(np.isneginf(scores), -1, np.take_along_axis(rows, places, axis=1)), scores


def fuse_hits(sides: Sequence[Sequence[Hits]], fusion: Fusion, k: int) -> list[Hits]:
    """Fuse answers of indexes that share ids but no row numbers; equal scores come in order of first mention.

    The order of mention is that of the first side's hits, then the second's. Raises BadFusionError.
    """
    if len({len(side) for side in sides}) > 1:
        raise BadFusionError(f"rankings answer different numbers of queries: {[len(side) for side in sides]}")
    rows, scores = fuse(_number(sides), fusion, k)
    counts = (rows >= 0).sum(axis=1).tolist()
    answers = []
    for hits, row, score, n in zip(zip(*sides, strict=True), rows.tolist(), scores, counts, strict=True):
        mentioned = tuple(chain.from_iterable([h.ids for h in hits]))
        answers.append(Hits(tuple([mentioned[place] for place in row[:n]]), score[:n]))
    return answers


def _number(sides: Sequence[Sequence[Hits]]) -> list[Ranking]:
    """Return the sides as rankings whose row numbers are places of first mention in the query's answers."""
    rankings = []
    for place, side in enumerate(sides):
        lengths = np.array([len(hits.ids) for hits in side], dtype=np.int64)
        filled = np.arange(lengths.max(initial=0)) < lengths[:, None]
        if place:
            queries = zip(*sides[: place + 1], strict=True)
            flat = chain.from_iterable(map(_first_mentions, queries))
            rows = np.full(filled.shape, -1)
            rows[filled] = np.fromiter(flat, dtype=np.int64, count=int(lengths.sum()))
        else:  # every id of the first side is new
            rows = np.where(filled, np.arange(filled.shape[1]), -1)
        scores = np.full(filled.shape, -np.inf, dtype=np.float32)
        if side:
            scores[filled] = np.concatenate([hits.scores for hits in side])
        rankings.append((rows, scores))
    return rankings


def _first_mentions(answers: Sequence[Hits]) -> Iterable[int]:
    """Return for each hit of the last answer where, through all answers, its id is mentioned first."""
    *earlier, last = [hits.ids for hits in answers]
    ids = earlier[0] if len(earlier) == 1 else tuple(chain.from_iterable(earlier))
    first = dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True))
    return map(first.get, last, range(len(ids), len(ids) + len(last)))
