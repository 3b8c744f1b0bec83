"""Reading an index on a cluster: documents by row, by id, or all of them; their versions, fields and vectors."""

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from indexes.cluster import mapping
from indexes.cluster.asking import hits_of
from indexes.cluster.client import api_error, reason_of
from indexes.cluster.connection import Connection
from indexes.interface import IndexesError, Matrix
from indexes.text.analysis import encodable

BATCH = 512  # documents read in one request
PAGE = 5000  # ids read in one request
SCANNED = "5m"  # how long the server keeps a point in time between two pages


class IndexReads(Connection):
    """Reads an index: by row if there is a directory next to it, otherwise by id."""

    def fetch(self, rows: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return the stored fields and terms by row; missing rows are left out. Raises BackendUnavailableError."""
        if not rows:
            return {}
        with self.errors():
            docs = self.client.mget(
                index=self.name, ids=[str(row) for row in rows], source=True, stored_fields=["terms"]
            )["docs"]
        found = (doc for doc in docs if doc.get("found"))
        return {int(doc["_id"]): doc["_source"] | {"terms": mapping.terms_of(doc)} for doc in found}

    def versions(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the stamp of each existing id in `ids`, as last written, even if searches do not see it yet."""
        found: dict[str, int] = {}
        for docs, part in self._read(ids, source=False):
            found |= {id_: doc["_version"] for id_, doc in zip(part, docs, strict=True) if doc.get("found")}
        return found

    def sources(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the stored fields of each existing id in `ids`, as last written."""
        found: dict[str, dict[str, Any]] = {}
        for docs, part in self._read(ids, source=True):
            found |= {id_: doc["_source"] for id_, doc in zip(part, docs, strict=True) if doc.get("found")}
        return found

    def _read(
        self, ids: Sequence[str], *, source: bool
    ) -> Iterator[tuple[list[dict[str, Any]], Sequence[str]]]:
        # No other id is valid, and the server refuses some of them.
        ids = [id_ for id_ in ids if id_ and id_.isprintable()]
        for start in range(0, len(ids), BATCH):
            part = ids[start : start + BATCH]
            yield self._requester.retry(functools.partial(self._documents, part, source)), part

    def _documents(self, ids: Sequence[str], source: bool) -> list[dict[str, Any]]:
        """Return the server's result for each id. Raises PassingError if it cannot say whether a document exists."""
        with self.errors():
            keys = [mapping.key_of(id_) for id_ in ids]
            docs: list[dict[str, Any]] = self.client.mget(index=self.name, ids=keys, source=source)["docs"]
        for doc in docs:
            if "error" in doc:
                reason = reason_of(doc)
                raise api_error(self.settings, 404 if "index_not_found" in reason else 503, reason)
        return docs

    def has_field(self, field: str) -> bool:
        """Return whether a visible document can be filtered by this metadata field. Raises BackendUnavailableError."""
        name = encodable(field)
        if self.settings.stateless:
            return len(name) > mapping.LONGEST_VALUE or self.count({"term": {"fields": name}}) > 0
        query = {"prefix": {"meta": f"{name}\x1f"}}
        with self.errors():
            answer = self.client.search(
                index=self.name, query=query, size=0, terminate_after=1, track_total_hits=True,
                allow_partial_search_results=False,
            )  # fmt: skip
        return int(answer["hits"]["total"]["value"]) > 0

    def fields(self) -> tuple[str, ...]:
        """Return the metadata fields of the visible documents, sorted."""
        with self.errors():
            answer = self.client.search(
                index=self.name, size=0, aggs={"fields": {"terms": {"field": "fields", "size": 10_000}}},
                allow_partial_search_results=False,
            )  # fmt: skip
        return tuple(sorted(bucket["key"] for bucket in answer["aggregations"]["fields"]["buckets"]))

    def scan(
        self,
        clauses: Sequence[Mapping[str, Any]] = (),
        *,
        source: bool = False,
        after: Sequence[Any] | None = None,
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the id of each visible document that matches all `clauses`, and with `source` its stored fields.

        They come in the order of their stamps, as of one point in time, starting after the stamp and id in `after`.
        """
        with self.errors():
            pit: str = self.client.open_point_in_time(index=self.name, keep_alive=SCANNED)["id"]
        try:
            while True:
                with self.errors():
                    answer = self.patient.search(
                        pit={"id": pit, "keep_alive": SCANNED}, query={"bool": {"filter": list(clauses)}},
                        size=BATCH if source else PAGE, search_after=after, source=source,
                        sort=[{"stamp": "asc"}, {"id": "asc"}], track_total_hits=False,
                        allow_partial_search_results=False,
                    )  # fmt: skip
                for hit in answer["hits"]["hits"]:
                    after = hit["sort"]
                    yield after[1], hit.get("_source", {})
                if not answer["hits"]["hits"]:
                    return
        finally:
            with contextlib.suppress(IndexesError), self.errors():  # the point in time also expires by itself
                self.client.close_point_in_time(id=pit)

    def vectors(self, ids: Sequence[str], dim: int) -> Matrix:
        """Return the vectors of the documents with these ids, float32 [n, dim]; zeros for one without a vector."""
        out = np.zeros((len(ids), dim), dtype=np.float32)
        for start in range(0, len(ids), BATCH):
            keys = {mapping.key_of(id_): n for n, id_ in enumerate(ids[start : start + BATCH], start)}
            with self.errors():
                answer = self.patient.search(
                    index=self.name, query={"ids": {"values": list(keys)}}, size=len(keys), source=False,
                    script_fields={"v": {"script": self.dialect.read}}, track_total_hits=False,
                    allow_partial_search_results=False,
                )  # fmt: skip
            for hit in answer["hits"]["hits"]:
                out[keys[hit["_id"]]] = np.ravel(hit["fields"]["v"])
        return out

    def sample(self, size: int, seed: int) -> list[dict[str, Any]]:
        """Return random documents, each with its `_id`, `_version` and `_source`; they depend only on `seed`."""
        query = {"function_score": {"random_score": {"seed": seed, "field": "stamp"}}}
        with self.errors():
            answer = self.patient.search(
                index=self.name, query=query, size=min(size, 10_000), version=True,
                track_total_hits=False, allow_partial_search_results=False,
            )  # fmt: skip
        hits: list[dict[str, Any]] = answer["hits"]["hits"]
        return hits

    def matches(self, queries: Sequence[Mapping[str, Any]]) -> list[bool]:
        """Return, for each query, whether a visible document matches it."""
        bodies = [{"query": query, "size": 1, "sort": ["stamp"]} for query in queries]
        return [bool(hits_of(answer)) for answer in self.msearch(bodies)]
