"""tantivy, faiss and bm25s, called as directly as possible, for comparison with the engine.

Analyser and schema equal those of the engine but are written out here; documents are rows, ids a Python list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tantivy
from tantivy import Filter, Occur, Query, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from benchmarks.support.common import records
from indexes.interface import Matrix, RowArray
from indexes.vectors.faiss_files import load_faiss

faiss = load_faiss()  # untyped

HEAP = 128_000_000
LINKS, EF_CONSTRUCTION = 32, 100
BLAS_BATCH = 5  # from this many queries on, FAISS's matrix product is faster (measured)


def read(corpus: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (id, title and text, metadata) of a JSONL file, gzipped or not."""
    for fields in records(corpus):
        title, text = fields.get("title"), fields["text"]
        yield fields["_id"], f"{title}\n{text}" if title else text, fields.get("metadata", {})


def analyzer(*, stop_words: bool) -> TextAnalyzer:
    builder = (
        TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(120)).filter(Filter.lowercase())
    )
    builder = builder.filter(Filter.stopword("english")) if stop_words else builder
    return builder.filter(Filter.stemmer("english")).build()


def open_tantivy(folder: Path) -> tantivy.Index:
    builder = tantivy.SchemaBuilder().add_text_field("body", tokenizer_name="words", index_option="freq")
    builder = builder.add_unsigned_field("row", indexed=True, fast=True)
    schema = builder.add_text_field("meta", tokenizer_name="raw", index_option="basic").build()
    folder.mkdir(parents=True, exist_ok=True)
    index = tantivy.Index(schema, str(folder))
    index.register_tokenizer("words", analyzer(stop_words=False))
    return index


def build_tantivy(corpus: Path, out: Path) -> list[str]:
    """Index a file on disk; return the ids."""
    ids = []

    def documents() -> Iterator[tuple[str, dict[str, Any]]]:
        for id_, text, metadata in read(corpus):
            ids.append(id_)
            yield text, metadata

    _fill(out, documents())
    return ids


def _fill(folder: Path, documents: Iterable[tuple[str, dict[str, Any]]]) -> None:
    writer = open_tantivy(folder).writer(HEAP, 1)
    for row, (text, metadata) in enumerate(documents):
        document = tantivy.Document()
        document.add_text("body", text)
        document.add_unsigned("row", row)
        for name, value in metadata.items():
            document.add_text("meta", f"{name}\x1f{value}")
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()


def build_bm25s(corpus: Path, out: Path) -> tuple[list[str], Any]:
    """Index a file with bm25s, Snowball stems and English stop words, and save it."""
    import bm25s

    ids, texts, _ = zip(*read(corpus), strict=True)
    index = bm25s.BM25()
    index.index(bm25s_terms(texts), show_progress=False)
    index.save(out)
    return list(ids), index


def bm25s_terms(texts: Sequence[str], *, stems: bool = True, stop_words: bool = True) -> Any:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english") if stems else None
    return bm25s.tokenize(texts, stopwords="en" if stop_words else None, stemmer=stemmer, show_progress=False)


def build_faiss(vectors: Path, out: Path, kind: str, rows: int) -> Any:
    """Index the first rows of a .npy file and write the index."""
    matrix = np.load(vectors, mmap_mode="r")[:rows]
    if kind == "flat":
        index = faiss.IndexFlatIP(matrix.shape[1])
    else:
        index = faiss.IndexHNSWFlat(matrix.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = EF_CONSTRUCTION
    index.add(np.ascontiguousarray(matrix))
    out.parent.mkdir(parents=True, exist_ok=True)
    faiss.write_index(index, str(out))
    return index


def filled_tantivy(folder: Path, texts: Iterable[str]) -> DirectText:
    """Index texts, which are identified by their rows; return the function that searches them."""
    _fill(folder, ((text, {}) for text in texts))
    return DirectText(folder, [])


class DirectText:
    """Search a tantivy folder."""

    def __init__(self, folder: Path, ids: list[str]) -> None:
        self._index, self._ids = open_tantivy(folder), ids
        self._searcher, self._analyzer = self._index.searcher(), analyzer(stop_words=True)

    def rows(self, texts: Sequence[str], k: int) -> list[tuple[list[int], list[float]]]:
        schema, found = self._index.schema, []
        for text in texts:
            terms = [Query.term_query(schema, "body", t, "freq") for t in self._analyzer.analyze(text)]
            query = Query.boolean_query([(Occur.Should, term) for term in terms])
            hits = self._searcher.search(query, k, count=False).hits
            rows: Any = self._searcher.fast_field_values("row", [address for _, address in hits])
            scores: Any = [score for score, _ in hits]
            found.append((rows, scores))
        return found

    def search(self, texts: Sequence[str], k: int) -> list[list[str]]:
        ids = self._ids
        return [[ids[row] for row in rows] for rows, _ in self.rows(texts, k)]


class DirectVectors:
    """Search a FAISS index; `ef` is the search width of a graph."""

    def __init__(self, index: Any, ids: list[str]) -> None:
        self._index, self._ids = index, ids

    def rows(self, vectors: Matrix, k: int, ef: int = 0) -> RowArray:
        faiss.cvar.distance_compute_blas_threshold = 1 if len(vectors) >= BLAS_BATCH else 2**31 - 1
        params = faiss.SearchParametersHNSW(efSearch=ef) if ef else None
        rows: RowArray = self._index.search(vectors, k, params=params)[1]
        return rows

    def search(self, vectors: Matrix, k: int, ef: int = 0) -> list[list[str]]:
        ids = self._ids
        return [[ids[row] for row in found if row >= 0] for found in self.rows(vectors, k, ef).tolist()]


def direct_hybrid(
    text: DirectText, dense: DirectVectors, texts: Sequence[str], vectors: Matrix, k: int, ids: list[str]
) -> list[list[str]]:
    """Fuse both retrievers' top 100 by reciprocal ranks in pure Python."""
    answers = []
    for (first, _), second in zip(text.rows(texts, 100), dense.rows(vectors, 100).tolist(), strict=True):
        total: dict[int, float] = defaultdict(float)
        for side in (first, second):
            for rank, row in enumerate(side, 61):
                total[row] += 0.5 / rank
        best = sorted(total, key=total.__getitem__, reverse=True)[:k]
        answers.append([ids[row] for row in best])
    return answers
