"""Brute-force search in numpy: the oracle that every vector backend is compared with."""

from collections.abc import Sequence

import numpy as np

from indexes.arrays import check_dim, check_k, normalised, padding
from indexes.interface import Filter, Hits, Matrix, Metadata, RowArray, ScoreArray, check_vectors
from indexes.rows import Rows


class ExactIndex:
    """VectorIndex that compares each query with every vector; scores are summed in float64, one row at a time."""

    def __init__(self, dim: int) -> None:
        check_dim(dim)
        self.dim = dim
        self._rows = Rows()
        self._vectors: Matrix = np.empty((0, dim), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, ids: Sequence[str], vectors: Matrix, metadata: Sequence[Metadata] | None = None) -> None:
        """Add a batch of `vectors`, float32 [n, dim], all or nothing.

        Raises DuplicateIdError, BadIdError or BadVectorError if the batch is invalid.
        """
        new = normalised(check_vectors(vectors, self.dim, ids))
        self._rows.append(ids, metadata)
        self._vectors = np.vstack([self._vectors, new])

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing. Raises UnknownIdError if an id is not in the index."""
        self._rows.remove(ids)

    def search(self, vectors: Matrix, k: int, where: Filter | None = None) -> list[Hits]:
        """Return the min(k, matching) best documents per query; equal scores come in row order.

        `vectors` is float32 [n, dim]. Raises what `search_rows` raises.
        """
        check_k(k)
        return self._rows.hits(*self.search_rows(vectors, min(k, len(self) or 1), where))

    def search_rows(
        self, queries: Matrix, k: int, where: Filter | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows (int64) and scores (float32), both [n, k], filled with −1 and −inf.

        `queries` is float32 [n, dim]. Raises IndexesError if k is below 1, BadVectorError if they are invalid.
        """
        check_k(k)
        queries = normalised(check_vectors(queries, self.dim))
        rows, scores = padding(len(queries), k)
        mask = self._rows.mask(where)
        allowed = np.arange(len(self._vectors)) if mask is None else np.flatnonzero(mask)
        candidates = self._vectors[allowed].astype(np.float64)
        for i, query in enumerate(queries):
            cosines = (candidates * query).sum(axis=1).astype(np.float32)
            best = np.lexsort((allowed, -cosines))[:k]
            rows[i, : len(best)], scores[i, : len(best)] = allowed[best], cosines[best]
        return rows, scores
