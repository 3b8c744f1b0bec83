"""The documents of an index that is only on a cluster, read by id, or by row once all ids have been read."""

import functools
from collections.abc import Iterator, Sequence

from indexes.cluster.index import ClusterIndex
from indexes.cluster.mapping import document_of
from indexes.cluster.reads import BATCH
from indexes.interface import Document, IndexesError, Matrix, Metadata

MOST = 1_000_000  # maximum number of documents whose ids are read
# number of documents in a block that is read by row, and number of blocks that are cached
BLOCK, BLOCKS = 64, 512


class RemoteDocuments:
    """Reads documents from the cluster; `named` is the index's name in errors.

    The first access by row reads the ids of all documents, in the order of their stamps. A document that is written
    later has no row, and one that is deleted later is empty. That access raises IndexesError if there are more than
    MOST documents.
    """

    def __init__(self, index: ClusterIndex, named: str) -> None:
        self._index, self._named = index, named
        self._block = functools.lru_cache(BLOCKS)(self._read_block)

    def read(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return the documents with those `ids` that exist, as last written."""
        name = self._index.name
        return {id_: document_of(source, name) for id_, source in self._index.sources(ids).items()}

    @functools.cached_property
    def _ids(self) -> list[str]:
        count = self._index.count()
        if count > MOST:
            raise IndexesError(
                f"{self._named} has {count:,} documents, and this would read all of their ids into memory; the limit "
                f"is {MOST:,}: use an index with fewer documents, or `linker search`, which reads no ids"
            )
        return [id_ for id_, _ in self._index.scan()]

    @property
    def rows(self) -> int:
        """Number of documents when the ids were read."""
        return len(self._ids)

    def ids(self) -> Sequence[str]:
        """Return all ids, in the order of the rows."""
        return self._ids

    def metadata(self) -> Iterator[Metadata]:
        """Yield every document's metadata, in the order of the rows."""
        return (document.metadata for block in self.blocks() for document in block)

    def texts(self) -> Iterator[str]:
        """Yield every document's indexed text, in the order of the rows."""
        return (document.full_text for block in self.blocks() for document in block)

    def blocks(self) -> Iterator[list[Document]]:
        """Yield all documents, in the order of the rows, in blocks."""
        return (self._at(start, BATCH) for start in range(0, self.rows, BATCH))

    def _at(self, start: int, count: int) -> list[Document]:
        part = self._ids[start : start + count]
        found = self.read(part)
        return [found.get(id_, Document(id_, "")) for id_ in part]

    def vectors(self, dim: int) -> list[Matrix]:
        """Return the vectors of all documents as at most one block, float32 [rows, dim], read into memory."""
        return [self._index.vectors(self._ids, dim)] if self._ids else []

    def __getitem__(self, row: int) -> Document:
        block, place = divmod(row, BLOCK)
        return self._block(block)[place]

    def _read_block(self, number: int) -> list[Document]:
        return self._at(number * BLOCK, BLOCK)
