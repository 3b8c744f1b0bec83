"""The candidates of queries, from both retrievers, and their features."""

from __future__ import annotations

import copy
import datetime
import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from indexes.anywhere import AnyCollection
from indexes.dtypes import BoolArray, Float32Array, Float64Array, Int64Array
from indexes.hybrid import Embed, HybridIndex
from indexes.interface import BackendUnavailableError, Filter, RowArray
from indexes.text import features
from linker.base.errors import ConfigError
from linker.base.logs import logger

DIRECTIONS = ("after", "before", "near")
# ranges of days in which a document is a candidate
WINDOWS = {"after": (-3, 14), "before": (-14, 3), "near": (-14, 14)}
DEEP = 200  # top BM25 documents from which those dated in the range become candidates
DEPTHS = (30, 50, 80)  # numbers of BM25's top documents that a ranker for linking may read
MISSED = 0.01  # share of known links that a smaller depth may miss, compared with the largest
SAMPLE = 1000  # queries used to choose the depth
DAYS = 1 << 20  # maximum number of documents whose dates are kept in memory
UNKNOWN = -99_999.0  # value of `days` if one of the dates is not known
VECTOR_NAMES = ("cosine",)
DATE_NAMES = ("days", "days_apart", "days_wrong")


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_YEAR = r"(?P<year>(?:1[89]|20)\d\d)"
FORMS = (
    re.compile(rf"\b{_YEAR}-(?P<number>\d\d)-(?P<day>\d\d)(?!\d)"),  # 2020-01-14, with or without a time
    # 14 January 2020, and January 14, 2020
    re.compile(rf"\b(?P<day>\d\d?)(?:st|nd|rd|th)?\s+{_MONTH},?\s+{_YEAR}\b", re.IGNORECASE),
    re.compile(rf"\b{_MONTH}\s+(?P<day>\d\d?)(?:st|nd|rd|th)?,?\s+{_YEAR}\b", re.IGNORECASE),
)
YEAR = re.compile(_YEAR)  # searched for first, since most texts state no year
MOST = 1 << 16  # characters searched, at the end of a text


def day_of(text: str) -> float:
    """Return the last date that a text states in English or ISO 8601, as days since year 1; NaN if there is none."""
    text = text[-MOST:]
    found = [match for form in FORMS for match in form.finditer(text)] if YEAR.search(text) else []
    for match in sorted(found, key=lambda m: -m.start()):
        parts = match.groupdict()
        month = int(parts["number"]) if "number" in parts else 1 + MONTHS.index(parts["month"].lower())
        try:
            return float(datetime.date(int(parts["year"]), month, int(parts["day"])).toordinal())
        except ValueError:
            continue
    return math.nan


def document_day(metadata: Mapping[str, Any], field: str) -> float:
    """Return the date in a field of a document's metadata as days since year 1; NaN if there is none."""
    value = metadata.get(field)
    return day_of(value) if isinstance(value, str) else math.nan


@dataclass(frozen=True)
class PoolSettings:
    """How many candidates a ranker reads: from BM25, from the encoder, and from BM25's documents with the right date.

    `date_field`: the metadata field of a document's date, or "". `direction`: documents are dated "after" their query,
    "before" it, or "near" it. Raises ConfigError if a value cannot be used.
    """

    bm25: int = 20
    dense: int = 10
    dated: int = 10
    date_field: str = ""
    direction: str = "near"

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise ConfigError(f"unknown direction {self.direction!r}: choose one of {', '.join(DIRECTIONS)}")
        if not (1 <= self.bm25 <= 1000 and 0 <= self.dense <= 1000 and 0 <= self.dated <= DEEP):
            raise ConfigError("a ranker reads 1 to 1,000 candidates from a retriever")

    def names(self, encoder: bool) -> tuple[str, ...]:
        """Return the names of a candidate's features, in an index with or without an encoder."""
        return (*features.NAMES, *(VECTOR_NAMES if encoder else ()), *(DATE_NAMES if self.date_field else ()))


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates of n queries, at most c each: rows (int64 [n, c], −1: none) and features (float32 [n, c, f])."""

    rows: RowArray
    features: Float32Array
    names: tuple[str, ...]

    @property
    def valid(self) -> BoolArray:
        """Which entries are candidates, bool [n, c]."""
        return self.rows >= 0

    def part(self, rows: slice) -> Pool:
        """Return the pool restricted to some of the queries."""
        return Pool(self.rows[rows], self.features[rows], self.names)

    def without(self, hidden: BoolArray) -> Pool:
        """Return the pool without the candidates marked in `hidden` (bool [n, c])."""
        return Pool(np.where(hidden, -1, self.rows), self.features, self.names)


class Gatherer:
    """Finds the candidates of queries in an index and computes their features."""

    def __init__(
        self,
        collection: AnyCollection,
        settings: PoolSettings,
        embed: Embed | None,
        ranking: HybridIndex | None = None,
    ) -> None:
        """`embed` turns texts into vectors, float32 [n, dim]; None: without an encoder.

        `ranking`: the retrievers that number the candidates' rows; by default, new ones of the collection.
        """
        self._collection, self._settings = collection, settings
        self._embed = embed if collection.manifest.embeds else None
        self._day = functools.lru_cache(DAYS)(day_of)
        self.ranking = ranking or collection.ranking()
        self.names = settings.names(self._embed is not None)

    def again(self) -> Gatherer:
        """Return the same gatherer with new row numbers, for the current documents."""
        other = copy.copy(self)
        other.ranking = self._collection.ranking()
        return other

    def gather(self, texts: Sequence[str], where: Filter | None = None) -> Pool:
        """Return the candidates of each text. Raises BackendUnavailableError if a retriever cannot answer."""
        hybrid, settings = self.ranking, self._settings
        if hybrid.text is None:
            raise BackendUnavailableError(
                "the ranker's candidates come from BM25, which this index does not have"
            )
        depth = max(DEEP, settings.bm25) if settings.date_field else settings.bm25
        found, _ = hybrid.text.search_rows(texts, depth, where)
        query_days = np.array([day_of(text) for text in texts if settings.date_field])
        parts: list[RowArray] = [found[:, : settings.bm25]]
        queries = None
        if settings.date_field:
            parts.append(self._rows_in_window(found, query_days))
        if self._embed is not None and hybrid.vectors is not None:
            queries = self._embed(texts)
            near, _ = hybrid.vectors.search_rows(queries, max(1, settings.dense), where)
            parts.append(near[:, : settings.dense])
        rows = _unique(np.concatenate(parts, axis=1))
        out = np.zeros((*rows.shape, len(self.names)), dtype=np.float32)
        forward = self._collection.forward_of(hybrid, rows, texts)
        for number, text in enumerate(texts):
            valid = rows[number][rows[number] >= 0]
            out[number, : len(valid), : len(features.NAMES)] = forward.describe(forward.words(text), valid)
        if queries is not None:
            vectors = self._collection.vectors_of(hybrid, rows)
            for number in range(len(texts)):
                size = int((rows[number] >= 0).sum())
                out[number, :size, len(features.NAMES)] = vectors[number, :size] @ queries[number]
        if settings.date_field:
            earlier = query_days[:, None] - self._days(rows)
            out[:, :, -len(DATE_NAMES) :] = np.where(rows[:, :, None] >= 0, self._date_features(earlier), 0)
        return Pool(rows, out, self.names)

    def _days(self, rows: RowArray) -> Float64Array:
        """Return the dates of documents `rows` [n, c] as days since year 1; NaN if there is none."""
        values = self._collection.values_of(self.ranking, rows.ravel(), self._settings.date_field)
        days = [self._day(value) if isinstance(value, str) else math.nan for value in values]
        return np.array(days).reshape(rows.shape)

    def _rows_in_window(self, found: RowArray, query_days: Float64Array) -> RowArray:
        """Return the first `dated` of BM25's rows [n, DEEP] whose dates are right, [n, dated], padded with −1."""
        low, high = WINDOWS[self._settings.direction]
        later = self._days(found) - query_days[:, None]
        right = (later >= low) & (later <= high)
        order = np.argsort(~right, axis=1, kind="stable")[:, : self._settings.dated]
        dated = np.where(np.take_along_axis(right, order, 1), np.take_along_axis(found, order, 1), -1)
        return np.asarray(dated, dtype=np.int64)

    def _date_features(self, earlier: Float64Array) -> Float32Array:
        """Return the features DATE_NAMES, float32 [n, c, 3]; a document is `earlier` [n, c] days before its query."""
        days = -earlier
        wrong = {"after": -days, "before": days, "near": np.abs(days)}[self._settings.direction]
        out = np.stack([days, np.abs(days), np.maximum(wrong, 0)], axis=-1)
        return np.where(np.isfinite(out), out, UNKNOWN).astype(np.float32)


def deep_enough(
    ranking: HybridIndex, texts: Sequence[str], links: Int64Array, settings: PoolSettings
) -> PoolSettings:
    """Return settings with the smallest of DEPTHS that finds nearly as many known links as the largest.

    `links` int64 [l, 2]: indices of `texts`, and rows of documents in `ranking`; of many texts, an evenly spaced
    sample is queried. Raises BackendUnavailableError if BM25 cannot answer.
    """
    if ranking.text is None:
        return settings
    step = -(-len(texts) // SAMPLE)
    rows, _ = ranking.text.search_rows(texts[::step], DEPTHS[-1])
    found = relevant_of(rows, links[links[:, 0] % step == 0] // (step, 1))
    recalls = [float(found[:, :depth].any(axis=1).mean()) for depth in DEPTHS]
    depth, recall = next((d, r) for d, r in zip(DEPTHS, recalls, strict=True) if r >= recalls[-1] - MISSED)
    logger.info("%.1f %% of the known links are among %d candidates of BM25", 100 * recall, depth)
    return replace(settings, bm25=depth)


def relevant_of(rows: RowArray, links: Int64Array) -> BoolArray:
    """Return which candidates `rows` [n, c] are links: bool [n, c]. `links` int64 [l, 2]: queries and documents."""
    width = int(max(rows.max(initial=0), links[:, 1].max(initial=0))) + 1
    codes = np.where(rows >= 0, rows, 0) + np.arange(len(rows))[:, None] * width
    return np.asarray(np.isin(codes, links[:, 0] * width + links[:, 1]) & (rows >= 0))


def _unique(rows: Int64Array) -> Int64Array:
    lines = [list(dict.fromkeys(row for row in line if row >= 0)) for line in rows.tolist()]
    out = np.full((len(rows), max([1, *map(len, lines)])), -1, dtype=np.int64)
    for number, line in enumerate(lines):
        out[number, : len(line)] = line
    return out
