"""bm25s, tantivy and Elasticsearch as text retrievers with their own analysis, for rankings and not for speed."""

import functools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import direct
from indexes.dtypes import Int64Array

K = 100
BATCH = 500


class Bm25s:
    """bm25s with its own tokenizer (its defaults except for stems and stop words) and its default parameters."""

    def __init__(self, texts: Sequence[str], *, stems: bool, stop_words: bool) -> None:
        import bm25s

        self._terms = functools.partial(direct.bm25s_terms, stems=stems, stop_words=stop_words)
        self._index = bm25s.BM25()
        self._index.index(self._terms(texts), show_progress=False)

    def search(self, queries: Sequence[str]) -> Int64Array:
        rows, scores = self._index.retrieve(self._terms(queries), k=K, show_progress=False)
        return np.where(scores > 0, rows, -1).astype(np.int64)


class Tantivy:
    """tantivy with English stems; stop words are dropped from queries. Its k1 and b are fixed at 1.2 and .75."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._text = direct.filled_tantivy(Path(self._folder.name), texts)

    def search(self, queries: Sequence[str]) -> Int64Array:
        return _padded(list(rows) for rows, _ in self._text.rows(queries, K))


class Elasticsearch:
    """Elasticsearch with its own `english` analyzer and its defaults, in a separate index on the server at `url`."""

    def __init__(self, texts: Sequence[str], url: str) -> None:
        import elasticsearch

        self._client = elasticsearch.Elasticsearch(url, request_timeout=600)
        self.name = "linker-benchmark-bm25"
        self._client.indices.delete(index=self.name, ignore_unavailable=True)
        properties = {"body": {"type": "text", "analyzer": "english"}}
        self._client.indices.create(
            index=self.name,
            settings={"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"},
            mappings={"properties": properties},
        )
        for start in range(0, len(texts), BATCH):
            lines: list[Any] = []
            for row, text in enumerate(texts[start : start + BATCH], start):
                lines += [{"index": {"_id": str(row)}}, {"body": text}]
            self._client.bulk(index=self.name, operations=lines)
        self._client.indices.refresh(index=self.name)
        self._client.indices.forcemerge(index=self.name, max_num_segments=1)

    def search(self, queries: Sequence[str]) -> Int64Array:
        found: list[list[int]] = []
        for start in range(0, len(queries), BATCH):
            lines: list[Any] = []
            for query in queries[start : start + BATCH]:
                body = {"query": {"match": {"body": query}}, "size": K, "_source": False}
                lines += [{"index": self.name}, body]
            for answer in self._client.msearch(searches=lines)["responses"]:
                found.append([int(hit["_id"]) for hit in answer["hits"]["hits"]])
        return _padded(found)


def _padded(answers: Iterator[list[int]] | list[list[int]]) -> Int64Array:
    return np.array([[*rows, *[-1] * (K - len(rows))] for rows in answers], dtype=np.int64)
