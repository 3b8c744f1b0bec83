"""Fusion: combining several rankings of the same documents.

Each retriever returns a `Ranking`: rows (int64 [Q, k_s]) and scores (float32 [Q, k_s]), best first, padded with
row −1 and score −inf; a row occurs at most once per query. A document's fused score is the weighted sum of its gains,
one from each retriever, which depend on the method:

- "rrf": 1 / (k + rank), ranks from 1. Cormack, Clarke & Büttcher, SIGIR 2009.
- "minmax": (s − min) / (max − min) over the retriever's hits for the query. The top hit always gains 1, however weak
  it is, and the last hit 0; if all scores are equal, every hit gains 1, so a lone hit still counts. Lee, SIGIR 1997.
- "max": s / max |s|, which keeps the ratios between scores: a long tail close to the top stays close.
- "cosine": s / max |s| for the first retriever, and s unchanged for the others, whose scores are cosines: for a query
  without a close neighbour, the first one decides. With weights (1, w) it is BM25 / max + w · cosine.
- "zscore": (s − mean) / standard deviation over the retriever's hits for the query; 0 if all scores are equal, so a
  lone hit has no influence. Montague & Aslam, CIKM 2001.

A document that a retriever did not return gains 0 from it, or its lowest gain for that query if this is negative. So
absence is never better than presence, and a retriever without hits gives every document 0. A retriever of weight 0
takes no part: its documents are not included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from indexes.dtypes import AnyArray
from indexes.interface import Hits, IndexesError, Mask, RowArray, ScoreArray

Method: TypeAlias = Literal["rrf", "minmax", "max", "cosine", "zscore"]
Ranking: TypeAlias = tuple[RowArray, ScoreArray]
Scale: TypeAlias = Literal["rrf", "minmax", "max", "none", "zscore"]
Gains: TypeAlias = npt.NDArray[np.float64]

BLOCK = 256  # queries fused at a time, so that the arrays of a block stay in the cache


class BadFusionError(IndexesError, ValueError):
    """The settings of a fusion are invalid, or the rankings do not match them."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """How rankings are fused: the method, one weight per retriever, and the k of reciprocal rank fusion.

    The default is meant for BM25 and dense retrieval, in this order, with 100 candidates each and no tuning. It was
    chosen on dev queries of statements, tweets and headlines, with weak (mean word vectors) and strong (MiniLM) dense
    retrievers: it beat the better of the two everywhere, whereas with equally weighted reciprocal ranks a weak one
    cost up to 0.16 in mean reciprocal rank (benchmarks/log/default-fusion.md).
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
        """Return the fusion that `to_json` wrote. Raises BadFusionError on anything else."""
        if not isinstance(values, Mapping) or set(values) != {"method", "weights", "k"}:
            raise BadFusionError(
                f"cannot read the fusion {values!r}: it needs method, weights and k, and nothing else"
            )
        if not isinstance(values["weights"], list):
            raise BadFusionError(f"fusion weights {values['weights']!r} must be a list of numbers")
        return cls(values["method"], tuple(values["weights"]), values["k"])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def fuse(sides: Sequence[Ranking], fusion: Fusion, k: int) -> Ranking:
    """Return the top k of each query: rows and scores, both [Q, k]; ties (in float32) are in ascending row order.

    `sides` holds one ranking per retriever; they may differ in width, but not in their number of queries. Raises
    BadFusionError if the rankings do not match each other or `fusion`, or k is below 1.
    """
    _check(sides, fusion, k)
    parts = [
        (*ranking, w, _scale(fusion.method, number))
        for number, (ranking, w) in enumerate(zip(sides, fusion.weights, strict=True))
        if w
    ]
    queries = len(sides[0][0])
    rows = np.full((queries, k), -1, dtype=np.int64)
    scores = np.full((queries, k), -np.inf, dtype=np.float32)
    for start in range(0, queries, BLOCK):
        block = slice(start, start + BLOCK)
        best, fused = _fuse_block([(r[block], s[block], w, m) for r, s, w, m in parts], fusion.k, k)
        rows[block, : best.shape[1]], scores[block, : best.shape[1]] = best, fused
    return rows, scores


def _scale(method: Method, number: int) -> Scale:
    """Return the scale that turns the scores of retriever `number` into gains."""
    if method != "cosine":
        return method
    return "none" if number else "max"


def _check(rankings: Sequence[Ranking], fusion: Fusion, k: int) -> None:
    if len(rankings) != len(fusion.weights):
        raise BadFusionError(
            f"expected {len(rankings)} fusion weights, one per ranking, got {len(fusion.weights)}"
        )
    if k < 1:
        raise BadFusionError(f"cannot return the top {k}: ask for 1 or more")
    shapes = [array.shape for ranking in rankings for array in ranking]
    if len({shape[0] for shape in shapes}) != 1 or shapes[::2] != shapes[1::2]:
        raise BadFusionError(f"rankings do not match: rows and scores have shapes {shapes}")


def _fuse_block(parts: Sequence[tuple[RowArray, ScoreArray, float, Scale]], rank_k: int, k: int) -> Ranking:
    gains, base = [], np.zeros((len(parts[0][0]), 1))
    for rows, scores, weight, scale in parts:
        present = rows >= 0
        gain = _gain(scores, present, scale, rank_k)
        lowest = np.min(gain, axis=1, keepdims=True, where=present, initial=0.0)
        gains.append(weight * (gain - lowest))
        base += weight * lowest
    merged, totals = _add_up(
        np.concatenate([p[0] for p in parts], axis=1), np.concatenate(gains, axis=1), len(parts)
    )
    return _best(merged, totals + base, k)


def _gain(scores: ScoreArray, present: Mask, scale: Scale, rank_k: int) -> Gains:
    """Return the gains [Q, k_s] of one retriever's hits; where no hit is present, the value is arbitrary."""
    if scale == "rrf":
        ranks = np.arange(1, scores.shape[1] + 1, dtype=np.float64)
        return np.broadcast_to(1.0 / (rank_k + ranks), scores.shape)
    wide = np.where(present, scores, 0.0).astype(np.float64)
    if scale == "none":
        return wide
    if scale == "max":
        return _ratio(wide, np.abs(wide).max(axis=1, keepdims=True, initial=0.0), 0.0)
    if scale == "zscore":
        return zscores(scores, present)
    low = np.min(wide, axis=1, keepdims=True, where=present, initial=np.inf)
    high = np.max(wide, axis=1, keepdims=True, where=present, initial=-np.inf)
    return _ratio(wide - low, high - low, 1.0)


def zscores(values: AnyArray, present: Mask, least: float = 0.0) -> Gains:
    """Standardise `values` [Q, k] where `present`; 0 elsewhere and in rows with a standard deviation ≤ `least`."""
    count = np.maximum(present.sum(axis=1, keepdims=True), 1)
    wide = np.where(present, values, 0.0).astype(np.float64)
    centred = np.where(present, wide - wide.sum(axis=1, keepdims=True) / count, 0.0)
    return _ratio(centred, np.sqrt((centred**2).sum(axis=1, keepdims=True) / count), 0.0, least)


def _ratio(values: Gains, by: Gains, otherwise: float, least: float = 0.0) -> Gains:
    """Return values [Q, k] / by [Q, 1], and `otherwise` in the rows where `by` is not above `least`."""
    out = np.full(values.shape, otherwise)
    np.divide(values, by, out=out, where=by > least)
    return out


def _add_up(rows: RowArray, gains: Gains, rankings: int) -> tuple[RowArray, Gains]:
    """Sort each query's rows [Q, n] in ascending order and sum the gains of equal rows into the first of them.

    Returns rows and totals, both [Q, n]; the total is −inf for a repeated row and for padding. The column is packed
    into the low bits of the sort key, since sorting integers is several times as fast as argsort.
    """
    width = rows.shape[1]
    bits = width.bit_length()
    padding = (1 << (62 - bits)) - 1  # a key that sorts after every row
    if int(rows.max(initial=0)) >= padding:
        raise BadFusionError(f"row number {rows.max()} is too large to fuse")
    keys = (np.where(rows < 0, padding, rows) << bits) | np.arange(width)
    keys.sort(axis=1)
    columns = keys & ((1 << bits) - 1)
    gains = np.take_along_axis(gains, columns, axis=1)
    rows = keys >> bits
    totals = gains.copy()
    for shift in range(1, rankings):
        totals[:, :-shift] += np.where(rows[:, shift:] == rows[:, :-shift], gains[:, shift:], 0.0)
    totals[:, 1:][rows[:, 1:] == rows[:, :-1]] = -np.inf
    totals[rows == padding] = -np.inf
    return rows, totals


def _best(rows: RowArray, totals: Gains, k: int) -> Ranking:
    """Return the best min(k, n) of `rows` [Q, n], ascending within each query, by their totals [Q, n].

    Totals are rounded to float32 before they are compared, so that the order agrees with the returned scores.
    """
    scores = totals.astype(np.float32) + np.float32(0.0)  # + 0 turns −0 into 0
    order = scores.view(np.int32)
    # As integers, the bits of floats sort like the floats once the magnitudes of negative ones are inverted.
    descending = ~np.where(order < 0, order ^ 0x7FFFFFFF, order)
    keys = (descending.astype(np.int64) << 32) | np.arange(rows.shape[1])
    if k < rows.shape[1]:
        keys = np.partition(keys, k - 1, axis=1)[:, :k]
    keys.sort(axis=1)
    columns = keys & 0xFFFFFFFF
    scores = np.take_along_axis(scores, columns, axis=1)
    return np.where(np.isneginf(scores), -1, np.take_along_axis(rows, columns, axis=1)), scores


def fuse_hits(sides: Sequence[Sequence[Hits]], fusion: Fusion, k: int) -> list[Hits]:
    """Fuse the results of indexes that share ids but not row numbers; return one Hits per query.

    `sides` has one Hits per query for each index. Equal scores come in order of first mention: the first index's hits,
    then the second's. Raises BadFusionError like `fuse`.
    """
    if len({len(side) for side in sides}) > 1:
        raise BadFusionError(f"rankings have different numbers of queries: {[len(side) for side in sides]}")
    rows, scores = fuse(_number(sides), fusion, k)
    counts = (rows >= 0).sum(axis=1).tolist()
    answers = []
    for hits, row, score, n in zip(zip(*sides, strict=True), rows.tolist(), scores, counts, strict=True):
        ids = tuple(chain.from_iterable([h.ids for h in hits]))
        answers.append(Hits(tuple([ids[number] for number in row[:n]]), score[:n]))
    return answers


def _number(answers: Sequence[Sequence[Hits]]) -> list[Ranking]:
    """Return the results as rankings, numbering each id by its first occurrence in a query's results."""
    rankings = []
    for number, answer in enumerate(answers):
        lengths = np.array([len(hits.ids) for hits in answer], dtype=np.int64)
        is_hit = np.arange(lengths.max(initial=0)) < lengths[:, None]
        if number:
            queries = zip(*answers[: number + 1], strict=True)
            flat = chain.from_iterable(map(_first_mentions, queries))
            rows = np.full(is_hit.shape, -1)
            rows[is_hit] = np.fromiter(flat, dtype=np.int64, count=int(lengths.sum()))
        else:  # every id of the first index is new
            rows = np.where(is_hit, np.arange(is_hit.shape[1]), -1)
        scores = np.full(is_hit.shape, -np.inf, dtype=np.float32)
        if answer:
            scores[is_hit] = np.concatenate([hits.scores for hits in answer])
        rankings.append((rows, scores))
    return rankings


def _first_mentions(answers: Sequence[Hits]) -> Iterable[int]:
    """Return, for each hit of the last result, the position of its id's first occurrence in all results."""
    *earlier, last = [hits.ids for hits in answers]
    ids = earlier[0] if len(earlier) == 1 else tuple(chain.from_iterable(earlier))
    first = dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True))
    return map(first.get, last, range(len(ids), len(ids) + len(last)))
