"""The embedded BM25 index: in memory or in a folder, with filters, removal and snapshots."""

import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from indexes import carrying
from indexes.arrays import check_k
from indexes.disk import faults
from indexes.dtypes import Int32Array, Int64Array
from indexes.interface import DamagedError, Filter, Hits, IndexesError, Metadata, RowArray, ScoreArray
from indexes.rows import Rows, check_lengths
from indexes.text import postings, segment_files
from indexes.text.analysis import Analysis
from indexes.text.parameters import AnalysisSettings, Bm25Parameters
from indexes.text.postings import PostingsSegment
from indexes.text.queries import query_terms
from indexes.text.scoring import Bm25Scorer
from indexes.text.vocabulary import TermVocabulary

PENDING = 1 << 23  # tokens buffered before they become a segment
BATCH = 1024  # documents reindexed at a time


class Bm25Index:
    """A TextIndex and RowSearch; `parameters` apply to every search that does not specify its own.

    A removed document is never returned, but still counts in the statistics (idf, average length) until the collection
    is compacted. Several threads may search at once, but not while the index is being changed. Raises IndexesError for
    an unknown language, DamagedError.
    """

    def __init__(
        self,
        analysis: str | AnalysisSettings = "english",
        directory: Path | None = None,
        rows: Rows | None = None,
        parameters: Bm25Parameters | None = None,
        segments: Sequence[PostingsSegment] = (),
        *,
        building: bool = True,
    ) -> None:
        """Start with `segments`, kept in memory, or with those stored in `directory`; `rows` maps their rows to ids.

        An index that is `building` merges larger segments when it commits (see carrying.py).
        """
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            segments = postings.read_folder(directory)
        self._start(analysis, directory, list(segments), rows, parameters)
        self._building = building
        self._check_rows()

    def _start(
        self,
        analysis: str | AnalysisSettings,
        directory: Path | None,
        segments: list[PostingsSegment],
        rows: Rows | None,
        parameters: Bm25Parameters | None,
    ) -> None:
        self.analysis = Analysis(analysis)
        self._parameters = parameters or Bm25Parameters()
        self._directory = self._source = directory
        self._rows = Rows() if rows is None else rows
        self._segments = segments
        self._scorer: Bm25Scorer | None = None
        self._vocabulary, self._query_terms = (
            TermVocabulary(self.analysis),
            query_terms(self.analysis.settings),
        )
        self._tokens: list[Int32Array] = []
        self._lengths: list[Int64Array] = []
        self._pending = 0  # number of tokens in `_tokens`
        self._refusal = ""  # the reason why changes are refused
        self._building = True  # by default, assume that nobody searches while documents are added
        self._closed = False
        self._lock = threading.Lock()

    def _check_rows(self) -> None:
        """Raise DamagedError unless there are postings for every row."""
        indexed = sum(s.documents for s in self._segments)
        if indexed != len(self._rows.ids):
            raise DamagedError(
                f"{self._source or 'the BM25 index'} holds {indexed} documents, but there are {len(self._rows.ids)} "
                "ids: rebuild the index"
            )

    @classmethod
    def open(
        cls,
        snapshot: Path,
        rows: Rows,
        analysis: str | AnalysisSettings = "english",
        parameters: Bm25Parameters | None = None,
        known: Mapping[str, PostingsSegment] | None = None,
    ) -> Self:
        """Open a snapshot for reading; nothing is written to it, and it may be deleted while it is open.

        `known` has segments that are already open, by file name. Raises DamagedError, and FileNotFoundError if the
        folder does not exist.
        """
        index = cls.__new__(cls)
        index._start(analysis, None, postings.read_folder(snapshot, known), rows, parameters)
        index._source, index._refusal = snapshot, f"{snapshot} is open for reading only"
        index._check_rows()
        return index

    @classmethod
    def resume(
        cls,
        snapshot: Path | None,
        scratch: Path,
        rows: Rows,
        analysis: str | AnalysisSettings = "english",
        parameters: Bm25Parameters | None = None,
        known: Mapping[str, PostingsSegment] | None = None,
        *,
        building: bool = True,
    ) -> Self:
        """Return an index that continues from a snapshot (None: a new one) in the new or empty folder `scratch`.

        `known` has segments that are already open, by file name. Unless `building` is true, commits merge only small
        segments. Raises IndexesError if `scratch` is not empty, FileNotFoundError if there is no snapshot,
        DamagedError.
        """
        scratch.mkdir(parents=True, exist_ok=True)
        if any(scratch.iterdir()):
            raise IndexesError(f"{scratch} is not empty: delete its contents, or choose another folder")
        segments = []
        for segment in postings.read_folder(snapshot, known) if snapshot else ():
            segments.append(segment_files.link(segment, scratch))
            faults.point("scratch.linked")
        index = cls.__new__(cls)
        index._start(analysis, scratch, segments, rows, parameters)
        index._building = building
        index._check_rows()
        return index

    @classmethod
    def rebuilt(
        cls,
        texts: Iterable[str],
        rows: Rows,
        analysis: str | AnalysisSettings = "english",
    ) -> Self:
        """Return a read-only index of `texts`, one per existing row in row order, including removed rows.

        Raises DamagedError unless there is one text per row.
        """
        index = cls.__new__(cls)
        index._start(analysis, None, [], rows, None)
        remaining = iter(texts)
        while batch := list(itertools.islice(remaining, BATCH)):
            index.extend(*index.numbers(batch))
        index._flush()
        index._check_rows()
        index._refusal = "it was rebuilt for reading only"
        index._vocabulary = TermVocabulary(index.analysis)
        return index

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def segments(self) -> Sequence[PostingsSegment]:
        """The segments in row order, excluding additions since the last commit."""
        return self._segments

    def add(
        self, ids: Sequence[str], texts: Sequence[str], metadata: Sequence[Metadata] | None = None
    ) -> None:
        """Add a batch, all or nothing. Raises DuplicateIdError, BadIdError, and IndexesError if it is read-only."""
        self._check_writable()
        check_lengths(ids, texts, metadata)
        # Steps that can fail come first, and `append` refuses bad ids: half a batch must never be added.
        tokens, lengths = self.numbers(texts)
        self._rows.append(ids, metadata)
        self.extend(tokens, lengths)

    def numbers(self, texts: Sequence[str]) -> tuple[Int32Array, Int64Array]:
        """Return the term ids of all texts and the length of each text; pass both to `extend` before any other call."""
        if self._pending >= PENDING or self._vocabulary.full():
            self._flush()
        return self._vocabulary.numbers(texts)

    def extend(self, tokens: Int32Array, lengths: Int64Array) -> None:
        """Add the texts passed to `numbers`. The caller adds their rows, which the indexes of several fields share."""
        if len(lengths):
            self._tokens.append(tokens)
            self._lengths.append(lengths)
            self._pending += len(tokens)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing. Raises UnknownIdError, and IndexesError if the index is read-only."""
        self._check_writable()
        self._rows.remove(ids)

    def _check_writable(self) -> None:
        if self._refusal:
            raise IndexesError(f"the BM25 index cannot be changed: {self._refusal}")

    def commit(self) -> None:
        """Make changes searchable, and durable in the folder, if any. Raises IndexesError if closed, OSError."""
        self.scorer()

    def scorer(self) -> Bm25Scorer:
        """Return the scorer of the rows, including additions. Raises the same errors as `commit`."""
        with self._lock:
            if self._closed:
                raise IndexesError("the BM25 index is closed")
            self._flush()
            self._scorer = self._scorer or Bm25Scorer(self._segments)
            return self._scorer

    def _flush(self) -> None:
        """Turn the additions into a segment, merged with the earlier segments that carrying.py selects."""
        if not self._lengths:
            return
        first = sum(s.documents for s in self._segments)
        tokens, lengths = np.concatenate(self._tokens), np.concatenate(self._lengths)
        new = postings.from_tokens(first, tokens, lengths, self._vocabulary.hashes)
        self._segments = segment_files.grow(
            self._segments, new, carrying.POSTINGS, self._directory, postings.merged, postings.write,
            building=self._building,
        )  # fmt: skip
        self._scorer, self._tokens, self._lengths, self._pending = None, [], [], 0
        if self._vocabulary.full():
            self._vocabulary = TermVocabulary(self.analysis)

    def close(self) -> None:
        """Close the index; changes since the last commit may be lost."""
        with self._lock:
            self._closed, self._refusal = True, "it is closed"
            self._segments, self._scorer = [], None

    def snapshot(self, target: Path) -> None:
        """Make the folder `target` an immutable copy of the last commit, with hard links where possible.

        Commit first: otherwise, only additions that have already filled a segment are included. Files are named by the
        checksum of their content, so files with the same name in two snapshots are identical. Raises IndexesError if
        the index has no folder, OSError.
        """
        if self._directory is None:
            raise IndexesError("an index in memory has no snapshots: create it with a `directory`")
        target.mkdir(exist_ok=True)
        for segment in self._segments:
            segment_files.link(segment, target)
            faults.point("text.linked")

    def holding(self, terms: Sequence[int]) -> RowArray:
        """Return the rows that have all of `terms` (hashes), int64 [n], ascending, including removed ones.

        Raises IndexesError if the index is closed, DamagedError if a file has become shorter.
        """
        return self.scorer().holding(terms)

    def search(
        self,
        texts: Sequence[str],
        k: int,
        where: Filter | None = None,
        bm25: Bm25Parameters | None = None,
    ) -> list[Hits]:
        """Return the top documents for each query, at most k; equal scores come in row order.

        `bm25` replaces the index's own parameters. Raises IndexesError if k is below 1 or the index is
        closed, DamagedError if a file has become shorter.
        """
        check_k(k)
        return self._rows.hits(*self.search_rows(texts, min(k, len(self) or 1), where, bm25))

    def search_rows(
        self,
        queries: Sequence[str],
        k: int,
        where: Filter | None = None,
        bm25: Bm25Parameters | None = None,
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores, both [n, k], best first, padded with −1 and −inf. Raises the errors of `search`."""
        check_k(k)
        if bm25 and bm25.fields:
            raise IndexesError("the index has no fields, so none can have a weight: build it with `fields`")
        terms, scorer = self._query_terms.of(queries), self.scorer()
        return scorer.best(terms, k, self._rows.mask(where), bm25 or self._parameters)
