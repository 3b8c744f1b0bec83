"""Queries as hashes of their terms, as the compiled functions need them; the terms of pieces are cached."""

from __future__ import annotations

import functools
import itertools
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from indexes import kernels
from indexes.dtypes import AnyArray, Int64Array
from indexes.text.analysis import Analysis
from indexes.text.parameters import AnalysisSettings
from indexes.text.vocabulary import term_hash, utf8

MOST = 1 << 15  # half the maximum number of cached pieces, and of the terms of all of them


class Queries:
    """The distinct terms of queries, in order of appearance.

    `data`, int64: the index of each query's first term, and the number of all terms; then the hash of each term
    (uint64); then their counts.
    """

    def __init__(self, number: int, data: Int64Array) -> None:
        self._number, self.data = number, data

    @classmethod
    def of(cls, queries: Sequence[Mapping[int, int]]) -> Self:
        """Return the queries, each of which maps the hashes of its terms to their counts."""
        first = list(itertools.accumulate(map(len, queries), initial=0))
        parts = (itertools.chain.from_iterable(queries), (n for q in queries for n in q.values()))
        hashes, counts = (
            np.fromiter(part, dtype, first[-1])
            for part, dtype in zip(parts, (np.uint64, np.int64), strict=True)
        )
        return cls(len(queries), np.concatenate((first, hashes.view(np.int64), counts)))

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, part: slice) -> Queries:
        low, high, _ = part.indices(len(self))
        first, here = self.first[low : high + 1], slice(self.first[low], self.first[high])
        data = (first - first[0], self.hashes[here].view(np.int64), self.counts[here])
        return Queries(high - low, np.concatenate(data))

    @property
    def first(self) -> Int64Array:
        """The index of each query's first term, then the number of all terms, int64 [n + 1]."""
        return self.data[: self._number + 1]

    @property
    def hashes(self) -> AnyArray:
        """The hash of each term, uint64 [terms]."""
        return self.data[self._number + 1 :][: self.data[self._number]].view(np.uint64)

    @property
    def counts(self) -> Int64Array:
        """How often each term occurs in its query, int64 [terms]."""
        terms = self.data[self._number]
        return self.data[self._number + 1 + terms :][:terms]


class QueryTerms:
    """Turns queries into hashes of their terms; otherwise like `Analysis.query_terms`. Thread-safe."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        # Calls hold the GIL, so each finds and leaves the cache in a consistent state.
        self._library = kernels.load("postings", brief=True)
        self._memory = self._empty_memory(2 * MOST)

    def _empty_memory(self, most: int) -> Memory:
        return Memory(most, posts=self._analysis.settings.tokenizer == "posts")

    def of(self, texts: Sequence[str]) -> Queries:
        """Return the terms of texts; stop words count only if a text has no other words."""
        if self._library is None:
            return Queries.of([self._counted(text) for text in texts])
        data, memory = utf8([self._analysis.prepare(text) for text in texts]), self._memory
        asked = np.empty(len(texts) + 1 + 2 * len(data), dtype=np.int64)
        call = self._library.terms_of
        while (unknown := kernels.call(call, memory.layout, data, len(data), len(texts), asked)) > 0:
            memory = self._with_pieces(memory, data, asked[len(texts) + 1 :][: 3 * unknown])
        self._memory = memory
        if unknown < -len(texts):
            raise MemoryError
        queries = Queries(len(texts), asked)
        return self._with_stop_words(texts, queries) if unknown else queries

    def _with_pieces(self, memory: Memory, data: bytes, unknown: Int64Array) -> Memory:
        """Add the terms of `unknown` pieces (hash, begin, end) to `memory`, or to a new one if full; return it."""
        every, begin, end = unknown.reshape(-1, 3).T
        hashes, first = np.unique(every, return_index=True)
        spans = zip(begin[first].tolist(), end[first].tolist(), strict=True)
        terms = [[term_hash(t) for t in self._analysis.content_terms(data[a:b].decode())] for a, b in spans]
        sizes = np.fromiter(map(len, terms), np.int64, len(terms))
        held = int(sizes.sum())
        joined = np.fromiter(itertools.chain.from_iterable(terms), np.uint64, held)
        while not kernels.call(
            self._library.remember, memory.layout, len(hashes), hashes, sizes, joined, held
        ):
            # Double the room, so that the pieces of one call, which arrive in parts, all fit in the end.
            memory = self._empty_memory(2 * max(MOST, len(hashes), held))
        return memory

    def _with_stop_words(self, texts: Sequence[str], queries: Queries) -> Queries:
        """Return the queries, adding the stop words of texts that have no other words."""
        first, hashes, counts = queries.first.tolist(), queries.hashes.tolist(), queries.counts.tolist()
        return Queries.of([
            dict(zip(hashes[a:b], counts[a:b], strict=True)) if b > a else self._counted(text)
            for text, a, b in zip(texts, first, first[1:], strict=False)
        ])  # fmt: skip

    def _counted(self, text: str) -> dict[int, int]:
        counts = Counter[int]()
        for term, count in self._analysis.query_terms(text).items():
            counts[term_hash(term)] += count
        return counts


class Memory:
    """A cache: the hashes of the terms of at most `most` pieces, by the pieces' hashes (`Memory` in postings.c)."""

    def __init__(self, most: int, *, posts: bool) -> None:
        """`posts`: whether texts are split like posts (analysis.py)."""
        slots = 1 << (2 * most - 1).bit_length()
        # Untouched pages of zeros take no memory.
        self._arrays = np.zeros(slots, np.uint64), np.zeros((slots, 2), np.int32), np.zeros(most, np.uint64)
        addresses = (array.__array_interface__["data"][0] for array in self._arrays)
        seed = int.from_bytes(os.urandom(8), "little", signed=True)
        self.layout = np.array([*addresses, slots, most, seed, posts, 0, 0], dtype=np.int64)


@functools.lru_cache(maxsize=8)
def query_terms(settings: AnalysisSettings) -> QueryTerms:
    """Return the QueryTerms for these settings, whose cache all callers in the process share."""
    return QueryTerms(Analysis(settings))
