"""An index on a cluster as a backend for the contracts: texts or vectors by id, visible to the next search."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from indexes.address import Address
from indexes.arrays import check_k, normalised
from indexes.cluster import RemoteCollection, RemoteWriter, drop, open_remote
from indexes.cluster.beside import ServerText
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.cluster.retrievers import ClusterVectors
from indexes.cluster.rows import ByRow
from indexes.interface import (
    BadVectorError,
    Document,
    Filter,
    Hits,
    IndexesError,
    Matrix,
    Metadata,
    RowArray,
    ScoreArray,
    check_vectors,
)
from indexes.rows import Rows
from indexes.store.records import BuildRecord, EncoderRecord, Manifest
from indexes.text.parameters import AnalysisSettings, Bm25Parameters


@contextlib.contextmanager
def addresses(url: str, stem: str, server: str = "elastic") -> Iterator[Callable[[], str]]:
    """Give addresses of new indexes, whose names begin with `stem`; all of them are dropped at the end."""
    given: list[str] = []

    def new() -> str:
        given.append(f"{server}+{url}/{new_name(stem)}")
        return given[-1]

    yield new
    for text in given:
        named = Address.of(text)
        assert named
        ClusterIndex(ElasticSettings.of(named)).remove_all()


class OnCluster:
    """TextIndex or VectorIndex over the writer and the collection that the commands use."""

    def __init__(self, address: str, manifest: Manifest, shards: int = 1) -> None:
        self.address, self.manifest = Address.of(address), manifest
        assert self.address
        with RemoteWriter.begin(self.address, manifest, shards) as writer:
            writer.commit(BuildRecord())
        self.dim = manifest.encoder.dim if manifest.encoder else 0
        self.reopen()

    def reopen(self) -> OnCluster:
        """Write and read the server's data over new connections."""
        assert self.address
        self._session = contextlib.ExitStack()
        self.writer = self._session.enter_context(RemoteWriter.change(self.address))
        self._collection: RemoteCollection | None = None
        return self

    @property
    def collection(self) -> RemoteCollection:
        assert self.address
        if self._collection is None:
            self.writer.commit()
            self._collection = open_remote(self.address)
        return self._collection

    def add(
        self, ids: Sequence[str], content: Sequence[str] | Matrix, metadata: Sequence[Metadata] | None = None
    ) -> None:
        metadata = [{}] * len(ids) if metadata is None else metadata
        if self.dim:
            if len(metadata) != len(ids):
                raise ValueError("the number of metadata records differs from the number of ids")
            texts, vectors = [""] * len(ids), np.asarray(content)
            if len(vectors) != len(ids):
                raise BadVectorError("the number of vectors differs from the number of ids")
        else:
            if not len(ids) == len(content) == len(metadata):
                raise IndexesError("ids, texts and metadata differ in number")
            # A document with half a surrogate pair is refused before it reaches an index.
            texts, vectors = [text.encode("utf-8", "replace").decode() for text in content], None
        metadata = [{k: _whole(v) for k, v in values.items()} for values in metadata]
        documents = [Document(i, t, "", m) for i, t, m in zip(ids, texts, metadata, strict=True)]
        self.writer.add(documents, vectors)
        self._collection = None

    def remove(self, ids: Sequence[str]) -> None:
        self.writer.remove(ids)
        self._collection = None

    def search(
        self, queries: Any, k: int, where: Filter | None = None, bm25: Bm25Parameters | None = None
    ) -> list[Hits]:
        if where is not None:
            where = Filter(tuple(c._replace(values=tuple(map(_whole, c.values))) for c in where.all))
        hybrid = self.collection.hybrid
        if not self.dim:
            return hybrid.search(queries, k, mode="bm25", where=where, bm25=bm25).hits
        texts = [""] * len(queries)
        return hybrid.search(texts, k, embed=lambda _: queries, mode="dense", where=where).hits

    def search_rows(self, queries: Any, k: int, where: Filter | None = None) -> tuple[RowArray, ScoreArray]:
        hybrid = self.collection.hybrid
        retriever: Any = hybrid.vectors if self.dim else hybrid.text
        rows, scores = retriever.search_rows(queries, k, where)
        return rows, scores

    def __len__(self) -> int:
        return len(self.collection.rows)

    def close(self) -> None:
        """Delete the index; idempotent."""
        if self.address:
            self._session.close()
            drop(self.address)
        self.address = None


class Beside:
    """VectorIndex over the vectors that a directory's writer sends and its collection searches."""

    def __init__(self, url: str, kind: str, dim: int) -> None:
        self._server = ClusterIndex(ElasticSettings((url,), new_name("contract")), timeout=60)
        self._server.create(dim, kind)
        manifest = Manifest(vectors=f"elastic-{kind}", encoder=EncoderRecord("elsewhere", "", dim))
        self.dim, self._rows = dim, Rows()
        self._writer = ServerText(manifest, self._rows, self._server)
        self._vectors = ClusterVectors(self._server, ByRow(self._rows), dim, kind, exact_below=1000)

    def add(self, ids: Sequence[str], vectors: Matrix, metadata: Sequence[Metadata] | None = None) -> None:
        vectors = normalised(check_vectors(vectors, self.dim, ids))
        values = [{}] * len(ids) if metadata is None else metadata
        if len(values) != len(ids):
            raise ValueError("the number of metadata records differs from the number of ids")
        documents = [Document(id_, "", "", m) for id_, m in zip(ids, values, strict=True)]
        self._writer.add_documents(documents, vectors)

    def remove(self, ids: Sequence[str]) -> None:
        self._writer.remove(ids)

    def search(self, vectors: Matrix, k: int, where: Filter | None = None) -> list[Hits]:
        check_k(k)
        return self._rows.hits(*self.search_rows(vectors, min(k, len(self) or 1), where))

    def search_rows(
        self, queries: Matrix, k: int, where: Filter | None = None
    ) -> tuple[RowArray, ScoreArray]:
        self._writer.commit()
        self._writer.settle()
        return self._vectors.search_rows(queries, k, where)

    def __len__(self) -> int:
        return len(self._rows)

    def close(self) -> None:
        self._server.drop()
        self._server.close()


def _whole(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def texts(address: str, parameters: Bm25Parameters, shards: int) -> OnCluster:
    """Return an empty index of texts, without stemming."""
    manifest = Manifest(analysis=AnalysisSettings("none"), bm25=parameters, build=BuildRecord(complete=False))
    return OnCluster(address, manifest, shards)


def vectors(address: str, kind: str, dim: int) -> OnCluster:
    """Return an empty index of external vectors."""
    encoder = EncoderRecord("elsewhere", "", dim)
    build = BuildRecord(complete=False)
    return OnCluster(address, Manifest(vectors=kind, encoder=encoder, build=build))
