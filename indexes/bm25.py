"""BM25 by tantivy: embedded, in memory or in a folder, with filters, removal, snapshots."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import xxhash
from tantivy import Document as Record
from tantivy import Index, IndexWriter, Occur, Query, Schema, SchemaBuilder, Searcher

from indexes import tantivy_files
from indexes.analysis import Analysis, encodable
from indexes.exact import check_k, padding
from indexes.interface import (
    DamagedError,
    Filter,
    Hits,
    IndexesError,
    Metadata,
    RowArray,
    ScoreArray,
    filter_values,
)
from indexes.rows import Rows

BODY, ROW, META, ANALYZER = "body", "row", "meta", "words"
HEAP = 128_000_000  # bytes of postings held before they are written
# A second thread was no faster (the caller's is busy too) and makes segments a matter of chance.
THREADS = 1
# Scores closer than this are equal: tantivy adds a document's terms in an order that its segment decides.
SAME = 1 - 2**-19
WIDEN = 4  # factor by which a search is widened while equal scores straddle the cut
LONGEST_VALUE = 200  # characters of a metadata value kept as they are; longer ones by checksum


class Bm25Index:
    """TextIndex and RowSearch. k1 = 1.2, b = .75; a term repeated in the query counts as often as it is there.

    Document lengths above 40 are rounded down to the next of 256 steps (as in Lucene). A removed document is
    never returned, but counts in the statistics (idf, average length) until its segment is merged or
    vanishes. Searches may run in several threads at once; changes need the index alone.
    Raises IndexesError for an unknown language, DamagedError.
    """

    def __init__(
        self, language: str = "english", directory: Path | None = None, rows: Rows | None = None
    ) -> None:
        """Start an index in memory, or live in `directory`; `rows` numbers what is in there already."""
        self._analysis = Analysis(language)
        self._directory = self._source = directory
        self._rows = Rows() if rows is None else rows
        self._schema = _schema()
        self._writer: IndexWriter | None = None
        self._dirty = False
        self._refusal = ""  # why nothing can be changed
        self._closed = False
        self._lock = threading.Lock()
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        with _tantivy_errors(directory, DamagedError):
            self._index = Index(self._schema, str(directory) if directory else None)
            self._index.register_tokenizer(ANALYZER, self._analysis.analyzer)
            self._index.config_reader("manual")
            self._searcher: Searcher = self._index.searcher()
        if self._searcher.num_docs != len(self._rows):
            raise DamagedError(
                f"{directory} holds {self._searcher.num_docs} documents, but there are {len(self._rows)} ids: "
                "rebuild the index"
            )

    @classmethod
    def open(cls, snapshot: Path, rows: Rows, language: str = "english") -> Self:
        """Open a snapshot for reading; nothing is written into it, and it may be deleted while it is open.

        Raises DamagedError, FileNotFoundError when the folder does not exist.
        """
        with tantivy_files.links(snapshot) as folder:
            try:
                index = cls(language, folder, rows)
            except DamagedError as e:
                raise DamagedError(str(e).replace(str(folder), str(snapshot))) from e
        index._directory, index._source = None, snapshot
        index._refusal = f"{snapshot} is open for reading only"
        return index

    @classmethod
    def resume(cls, snapshot: Path | None, scratch: Path, rows: Rows, language: str = "english") -> Self:
        """Go on from a snapshot (None: from nothing) in the empty or absent folder `scratch`, live from now on."""
        tantivy_files.unfold(snapshot, scratch)
        return cls(language, scratch, rows)

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self, ids: Sequence[str], texts: Sequence[str], metadata: Sequence[Metadata] | None = None
    ) -> None:
        """Add a batch, all or nothing. Raises DuplicateIdError, BadIdError."""
        writer = self._writing()
        if len(texts) != len(ids) or (metadata is not None and len(metadata) != len(ids)):
            raise IndexesError(f"{len(ids)} ids, but {len(texts)} texts or another number of metadata")
        values = metadata or ({},) * len(ids)
        # all records first, and `append` refuses bad ids: nothing must leave half a batch behind
        records = [
            self._record(text, row, value)
            for row, (text, value) in enumerate(zip(texts, values, strict=True), len(self._rows.ids))
        ]
        self._rows.append(ids)
        self._dirty = True
        with self._write_errors():
            for record in records:
                writer.add_document(record)

    def _record(self, text: str, row: int, metadata: Metadata) -> Record:
        record = Record()
        prepared = self._analysis.prepare(text)
        try:
            record.add_text(BODY, prepared)
        except UnicodeEncodeError:
            record.add_text(BODY, encodable(prepared))
        record.add_unsigned(ROW, row)
        for name, value in metadata.items():
            for one in filter_values(value):
                record.add_text(META, meta_term(name, one))
        return record

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing. Raises UnknownIdError."""
        writer = self._writing()
        rows = self._rows.remove(ids).tolist()
        self._dirty = self._dirty or bool(rows)
        with self._write_errors():
            for row in rows:
                writer.delete_documents_by_query(Query.term_query(self._schema, ROW, row, "basic"))

    def _writing(self) -> IndexWriter:
        if self._refusal:
            raise IndexesError(f"the BM25 index cannot be changed: {self._refusal}")
        if self._writer is None:
            with self._write_errors():
                self._writer = self._index.writer(HEAP, THREADS)
        return self._writer

    def commit(self) -> None:
        """Make changes searchable and, in a folder, durable; searches do the former by themselves."""
        with self._lock:
            if self._closed:
                raise IndexesError("the BM25 index is closed")
            if not self._dirty:
                return
            writer = self._writing()
            with self._write_errors():
                writer.commit()
                self._index.reload()
            self._searcher = self._index.searcher()
            self._dirty = False

    def _write_errors(self) -> contextlib.AbstractContextManager[None]:
        return _tantivy_errors(self._directory, IndexesError)

    def close(self) -> None:
        """End the use of the index and stop its threads; changes since the last commit are lost."""
        if self._closed:
            return
        self._closed, self._refusal = True, "it is closed"
        writer, self._writer = self._writer, None
        if writer is not None:
            with self._write_errors():
                writer.wait_merging_threads()
        del self._index, self._searcher

    def snapshot(self, target: Path) -> None:
        """Make the new folder `target` an immutable copy of the last commit, of hard links where possible.

        Files that an earlier snapshot has under the same name are the same, but for meta.json.
        """
        if self._directory is None:
            raise IndexesError("only an index that lives in a folder has snapshots: give it a directory")
        tantivy_files.fold(self._directory, target)

    def search(self, texts: Sequence[str], k: int, where: Filter | None = None) -> list[Hits]:
        """Return the best documents of each query, at most k; equal scores come in row order."""
        check_k(k)
        return self._rows.hits(*self.search_rows(texts, min(k, len(self) or 1), where))

    def search_rows(
        self, queries: Sequence[str], k: int, where: Filter | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores, both [n, k], filled with −1 and −inf."""
        check_k(k)
        self.commit()
        rows, scores = padding(len(queries), k)
        searcher, condition = self._searcher, self._condition(where)
        if len(self):
            with _tantivy_errors(self._source, DamagedError):
                for i, text in enumerate(queries):
                    found, values = _best(searcher, self._query(text, condition), min(k, len(self)))
                    rows[i, : len(found)], scores[i, : len(found)] = found, values
        return rows, scores

    def _query(self, text: str, condition: Query | None) -> Query:
        terms = []
        for term, count in self._analysis.query_terms(text).items():
            query = Query.term_query(self._schema, BODY, term, "freq")
            terms.append((Occur.Should, query if count == 1 else Query.boost_query(query, count)))
        query = Query.boolean_query(terms)
        if condition is None:
            return query
        return Query.boolean_query([(Occur.Must, query), (Occur.Must, condition)])

    def _condition(self, where: Filter | None) -> Query | None:
        """Return the filter as a query that adds nothing to a score."""
        if where is None or not where.conditions:
            return None
        fields = [
            Query.term_set_query(self._schema, META, [meta_term(name, value) for value in values])
            for name, values in where.conditions
        ]
        return Query.const_score_query(Query.boolean_query([(Occur.Must, f) for f in fields]), 0.0)


def _schema() -> Schema:
    builder = SchemaBuilder().add_text_field(BODY, tokenizer_name=ANALYZER, index_option="freq")
    builder = builder.add_unsigned_field(ROW, indexed=True, fast=True)
    return builder.add_text_field(META, tokenizer_name="raw", index_option="basic").build()


def meta_term(name: str, value: str) -> str:
    """Return one term for a metadata field and value; what is long or ambiguous enters by its checksum."""
    term = encodable(f"{name}\x1f{value}")
    if len(term) <= LONGEST_VALUE and term.count("\x1f") == 1:
        return term
    return xxhash.xxh3_128_hexdigest(json.dumps([name, value]).encode())


def _best(searcher: Searcher, query: Query, k: int) -> tuple[Any, ScoreArray]:
    """Return rows and scores of the k best, best first, equal scores in row order also at the cut."""
    # a few more at once: another search for a tie at the cut costs as much as the first
    fetch, everything = k + max(4, k // 8), searcher.num_docs + 1
    while True:
        hits = searcher.search(query, fetch, count=False).hits
        if len(hits) < fetch or hits[-1][0] < hits[k - 1][0] * SAME:
            break
        fetch = min(fetch * WIDEN, everything)
    values, addresses = zip(*hits, strict=True) if hits else ((), ())
    rows = np.array(searcher.fast_field_values(ROW, list(addresses)), dtype=np.int64)
    scores = np.array(values, dtype=np.float32)
    differs = scores[1:] < scores[:-1] * SAME
    if not differs.all():
        starts = np.concatenate(([0], np.flatnonzero(differs) + 1))
        scores = np.repeat(scores[starts], np.diff(np.append(starts, len(scores))))
        rows = rows[np.lexsort((rows, -scores))]
    return rows[:k], scores[:k]


@contextlib.contextmanager
def _tantivy_errors(folder: Path | None, kind: type[IndexesError]) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as e:
        where = f" in {folder}" if folder else ""
        remedy = "restore it, or rebuild the index" if kind is DamagedError else "open the index again"
        raise kind(f"the BM25 index{where} failed: {e}; {remedy}") from e
