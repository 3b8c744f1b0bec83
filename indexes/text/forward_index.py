"""A forward index that can grow: segments in memory or in a folder, merged and copied like those of BM25."""

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from indexes import carrying, kernels
from indexes.arrays import distinct
from indexes.disk import faults
from indexes.dtypes import AnyArray, Float32Array, Int64Array
from indexes.interface import DamagedError, RowArray
from indexes.text import features, forward, plain_features, segment_files
from indexes.text.analysis import Analysis
from indexes.text.features import NAMES, QueryWords, Weights
from indexes.text.forward import ForwardSegment
from indexes.text.parameters import AnalysisSettings
from indexes.text.scoring import lucene_idf
from indexes.text.vocabulary import TermVocabulary

PENDING = 1 << 23  # tokens buffered before they become a segment
BATCH = 1024  # texts analysed at a time
ROWS = 256  # rows searched for a phrase at a time

# Terms' ranks in a segment's table, and how many of its rows have each term.
Found = tuple[AnyArray, AnyArray]


class ForwardIndex:
    """Each row's terms in order, and term statistics. Removed rows still count until the index is compacted.

    Several threads may call `describe` at once, but not during a change.
    """

    def __init__(
        self,
        analysis: str | AnalysisSettings = "english",
        directory: Path | None = None,
        segments: Sequence[ForwardSegment] = (),
        *,
        building: bool = True,
    ) -> None:
        """Start with `segments`: in memory if `directory` is None; otherwise, their files are in that folder."""
        self._analysis = Analysis(analysis)
        self._reader = features.QueryReader(self._analysis)
        self._directory, self._segments, self._building = directory, list(segments), building
        self._vocabulary = TermVocabulary(self._analysis)
        self._parts: list[tuple[AnyArray, ...]] = []
        self._pending = 0  # number of tokens in `_parts`

    @classmethod
    def open(
        cls,
        folder: Path,
        rows: int,
        analysis: str | AnalysisSettings = "english",
        known: Mapping[str, ForwardSegment] | None = None,
    ) -> Self:
        """Open a snapshot of this many rows for reading; see `Bm25Index.open`. Raises DamagedError, OSError."""
        index = cls(analysis, None, forward.read_folder(folder, known))
        if index.rows != rows:
            raise DamagedError(
                f"the forward index in {folder} has {index.rows} documents instead of {rows}: rebuild the index"
            )
        return index

    @classmethod
    def resume(
        cls,
        snapshot: Path | None,
        scratch: Path,
        analysis: str | AnalysisSettings = "english",
        known: Mapping[str, ForwardSegment] | None = None,
        *,
        building: bool = True,
    ) -> Self:
        """Return an index that continues from a snapshot in the folder `scratch`; see `Bm25Index.resume`."""
        scratch.mkdir(parents=True, exist_ok=True)
        segments = forward.read_folder(snapshot, known) if snapshot else ()
        linked = [segment_files.link(segment, scratch) for segment in segments]
        return cls(analysis, scratch, linked, building=building)

    @classmethod
    def of(cls, texts: Iterable[str], analysis: str | AnalysisSettings = "english") -> Self:
        """Return an index of texts in memory."""
        index = cls(analysis)
        remaining = iter(texts)
        while batch := list(itertools.islice(remaining, BATCH)):
            index.add(batch)
        index.commit()
        return index

    @property
    def segments(self) -> Sequence[ForwardSegment]:
        """The segments in row order."""
        return self._segments

    @property
    def rows(self) -> int:
        """Number of rows, including removed ones, excluding additions since the last commit."""
        return sum(s.documents for s in self._segments)

    def add(self, texts: Sequence[str]) -> None:
        """Add the texts of the next rows."""
        if self._pending >= PENDING or self._vocabulary.full():
            self.commit()
        part = forward.numbered(self._vocabulary, texts)
        self._parts.append(part)
        self._pending += len(part[0])

    def commit(self) -> None:
        """Turn the additions into a segment, merged with the earlier segments that carrying.py selects."""
        if not sum(len(lengths) for _, lengths, _, _ in self._parts):
            return
        tokens, lengths, of_sentences, counts = (np.concatenate(p) for p in zip(*self._parts, strict=True))
        hashes = self._vocabulary.hashes
        new = forward.from_tokens(self.rows, tokens, lengths, of_sentences, counts, hashes)
        self._segments = segment_files.grow(
            self._segments, new, carrying.TOKENS, self._directory, forward.merged, forward.write,
            building=self._building,
        )  # fmt: skip
        self._parts, self._pending = [], 0
        for name in ("_statistics", "total"):
            self.__dict__.pop(name, None)
        if self._vocabulary.full():
            self._vocabulary = TermVocabulary(self._analysis)

    def snapshot(self, target: Path) -> None:
        """Link or copy the files of the last commit into the folder `target`."""
        for segment in self._segments:
            segment_files.link(segment, target)
            faults.point("forward.linked")

    @functools.cached_property
    def total(self) -> tuple[int, int]:
        """The numbers of documents and tokens in the term statistics."""
        return self.rows, sum(s.size for s in self._segments)

    def frequencies(self, hashes: AnyArray, found: Sequence[Found] | None = None) -> AnyArray:
        """Return how many documents have each term; `found` has the result of `_find` per segment, if it is known."""
        found = found or [_find(s, hashes) for s in self._segments]
        frequencies: AnyArray = np.sum([counts for _, counts in found], axis=0)
        return frequencies

    def _frequencies_of_segments(self) -> list[Int64Array]:
        """Return, for each segment, how many documents of the index have each of its terms."""
        found = [s.frequencies.astype(np.int64) for s in self._segments]
        for pair in itertools.combinations(range(len(found)), 2):
            few, many = sorted(pair, key=lambda number: len(found[number]))
            ranks, counts = _find(self._segments[many], self._segments[few].hashes)
            shared = ranks != features.ABSENT
            found[few] += counts
            found[many][ranks[shared]] += self._segments[few].frequencies[shared]
        return found

    @functools.cached_property
    def _statistics(self) -> tuple[Int64Array, list[Float32Array]]:
        """The first row of each segment, and the idf of each segment's terms."""
        firsts = np.array([s.first for s in self._segments], dtype=np.int64)
        documents, _ = self.total
        found = self._frequencies_of_segments()
        # Terms have few different frequencies, so logarithms are taken of these.
        most = max((int(frequencies.max(initial=0)) for frequencies in found), default=0)
        idf = lucene_idf(np.arange(most + 1), documents).astype(np.float32)
        return firsts, [idf[frequencies] for frequencies in found]

    def words(self, text: str) -> QueryWords:
        """Return a query's words in the form that `describe` needs."""
        return self._reader.read(text)

    def describe(self, query: QueryWords, rows: AnyArray) -> Float32Array:
        """Return a query's features with each of `rows` [n], float32 [n, NAMES]. Raises IndexError, DamagedError."""
        forward.check_lengths(self._segments)
        if len(rows) and not 0 <= rows.min() <= rows.max() < self.rows:
            raise IndexError(f"expected rows from 0 to {self.rows - 1}, got {rows.min()} to {rows.max()}")
        (firsts, idf), (documents, tokens) = self._statistics, self.total
        matches = [_find(s, query.hashes) for s in self._segments]
        weights = features.weigh(query, self.frequencies(query.hashes, matches), documents, tokens)
        out = np.empty((len(rows), len(NAMES)), dtype=np.float32)
        segment_of = np.searchsorted(firsts, rows, side="right") - 1
        for number in distinct(segment_of).tolist():
            members, segment = segment_of == number, self._segments[number]
            out[members] = _describe(
                segment, idf[number], rows[members] - segment.first, tokens / max(1, documents) or 1.0, query,
                matches[number][0], weights,
            )  # fmt: skip
        return out

    def having(self, phrase: AnyArray, rows: RowArray) -> RowArray:
        """Return those of `rows` (int64 [n], ascending) that have the phrase (term hashes). Raises DamagedError."""
        forward.check_lengths(self._segments)
        edges = np.searchsorted(rows, [s.first for s in self._segments] + [self.rows])
        found = []
        for segment, low, high in zip(self._segments, edges, edges[1:], strict=False):
            terms, _ = _find(segment, phrase)
            if (terms != features.ABSENT).all():
                found.append(_following(segment, terms, rows[low:high] - segment.first) + segment.first)
        return np.concatenate(found) if found else rows[:0]


def _following(segment: ForwardSegment, terms: AnyArray, rows: RowArray) -> RowArray:
    rarest = int(np.argmin(segment.frequencies[terms]))
    found = [rows[:0]]
    for low in range(0, len(rows), ROWS):
        part = rows[low : low + ROWS]
        lengths = segment.offsets[part + 1] - segment.offsets[part]
        edges = np.concatenate(([0], np.cumsum(lengths)))
        tokens = segment.tokens[np.repeat(segment.offsets[part] - edges[:-1], lengths) + np.arange(edges[-1])]
        found.append(part[with_phrase(tokens, edges, terms, rarest)])
    return np.concatenate(found)


def with_phrase(tokens: AnyArray, edges: AnyArray, phrase: AnyArray, rarest: int) -> AnyArray:
    """Return the texts (int64 [n], ascending) that have the terms of a phrase in sequence.

    Text t has the terms `tokens[edges[t] : edges[t + 1]]`; `phrase[rarest]` is the term that is looked for first.
    """
    places = np.flatnonzero(tokens == phrase[rarest])
    text = np.searchsorted(edges, places, side="right") - 1
    begins = places - rarest
    inside = (begins >= edges[text]) & (begins + len(phrase) <= edges[text + 1])
    begins, text = begins[inside], text[inside]
    return distinct(text[(tokens[begins[:, None] + np.arange(len(phrase))] == phrase).all(axis=1)])


def _describe(
    segment: ForwardSegment,
    idf: Float32Array,
    rows: AnyArray,
    average: float,
    query: QueryWords,
    numbers: AnyArray,
    weights: Weights,
) -> Float32Array:
    """Return the features of a query with each of `rows` (int64 [n]) of a segment, float32 [n, NAMES].

    `idf`: float32 [the segment's terms]; `average`: tokens per document of the index; `numbers`: uint32 [terms], the
    rank of each of the query's terms among the segment's, or ABSENT.
    """
    library = kernels.load("features")
    if library is None:
        return plain_features.describe(segment, idf, rows, average, query, numbers, weights)
    out = np.empty((len(rows), len(NAMES)), dtype=np.float32)
    kernels.call(
        library.describe, segment.tokens, segment.offsets, segment.sentences, segment.sentence_offsets, idf, rows,
        len(rows), np.array([average]), query.word, len(query.word), numbers, weights.weight, weights.idf,
        weights.chance, query.kind, len(query.hashes), out,
    )  # fmt: skip
    return out


def _find(segment: ForwardSegment, hashes: AnyArray) -> Found:
    """Return terms' ranks in a segment's table (uint32; ABSENT if not in it), and how many rows have each term."""
    if not len(segment.hashes):
        return np.full(len(hashes), features.ABSENT, dtype=np.uint32), np.zeros(len(hashes), dtype=np.int64)
    rank = np.minimum(np.searchsorted(segment.hashes, hashes), len(segment.hashes) - 1)
    matches = segment.hashes[rank] == hashes
    return (
        np.where(matches, rank, features.ABSENT).astype(np.uint32),
        np.where(matches, segment.frequencies[rank], 0).astype(np.int64),
    )
