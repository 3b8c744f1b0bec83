"""Vector search over FAISS: exact (`flat`), a graph (`hnsw`), compressed codes (`pq`), or codes in cells (`ivfpq`).

Every kind keeps the raw normalised vectors once, in an IndexFlatIP. Scores always come from one formula over the raw
vectors, so they depend neither on the batch size nor on the kind, and equal vectors have equal scores. Exact answers
come from the certified scan (certified.py) if it can run and pays off, otherwise from FAISS (flat.py); callers may
supply their own scan (linker/engine/torch_scan.py).
"""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from indexes.arrays import check_dim, check_k, normalised, padding
from indexes.disk.reading import check_length
from indexes.disk.writing import FileRecord
from indexes.interface import (
    Filter,
    Hits,
    IndexesError,
    Mask,
    Matrix,
    Metadata,
    RowArray,
    ScoreArray,
    check_vectors,
)
from indexes.kinds import AUTO, IN_DIRECTORY
from indexes.rows import Rows
from indexes.vectors.certified import ByteScan, ExactScan
from indexes.vectors.faiss_files import load_faiss
from indexes.vectors.flat import BLAS_BATCH, FlatScan, best, exact_scores, with_reserve
from indexes.vectors.hnsw import Hnsw
from indexes.vectors.kinds import AUTO_EXACT, GENERATORS, CandidateGenerator, kind_by_size, kind_of
from indexes.vectors.pq import Settings
from indexes.vectors.stored import StoredVectors

EXACT_BELOW = 10_000  # with fewer rows, approximation does not pay off
CODED_FROM = 1 << 14  # with fewer rows, a scan by FAISS is as fast as the certified one
CODED_AFTER = 8  # this many single queries by FAISS cost as much as computing the codes
BATCHED = 16  # this many queries in a batch count as one single query
PICKED = 16  # if a filter allows fewer than one row in 16, a copy of these rows is searched
FEW = 32  # the certified scan pays off if k is at most a 32nd of the rows


class FaissIndex:
    """VectorIndex and RowSearch. Searches may run in several threads at once; a change needs exclusive access.

    `hnsw`, `pq` and `ivfpq` answer exactly while they hold fewer than `exact_below` rows, and whenever a filter
    leaves so few rows that comparing each is cheaper. Otherwise they are approximate, but never return fewer hits
    than exist. Equal scores are in row order; if more rows tie at rank k than fit, any of them may be returned. `auto`
    is flat below 200,000 rows and chooses by size from then on.
    """

    clock: Callable[[], float] = staticmethod(time.process_time)

    def __init__(
        self,
        dim: int,
        kind: str = "flat",
        *,
        exact_below: int | None = None,
        settings: Settings | None = None,
        scan: Callable[[], ExactScan | None] | None = None,
    ) -> None:
        """Create an empty index for vectors of dimension `dim`.

        `settings` are the search parameters chosen by `index tune --recall`; unknown names are ignored. `scan`
        creates the exact scan to use instead of the certified one, once that pays off; it may return None. Raises
        IndexesError if `dim` or `kind` is invalid, MissingExtraError if FAISS is not installed.
        """
        check_dim(dim)
        if kind not in IN_DIRECTORY:
            raise IndexesError(f"unknown kind of vector index {kind!r}: choose {', '.join(IN_DIRECTORY)}")
        self.dim, self.kind = dim, kind
        self._stored = StoredVectors(dim)
        self._flat_scan = FlatScan(self._stored)
        self._make_scan = scan
        self._scan: ExactScan | None = None
        self._asked = 0
        self._rows = Rows()
        self._generator: CandidateGenerator | None = None
        self._covered = 0  # number of rows that the generator has indexed
        self._exact_below = exact_below or (AUTO_EXACT if kind == AUTO else EXACT_BELOW)
        self._settings = settings or {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def vectors(self) -> Matrix:
        """All normalised vectors, including dead rows: a read-only view [rows, dim], valid until the next change."""
        return self._stored.array

    def add(self, ids: Sequence[str], vectors: Matrix, metadata: Sequence[Metadata] | None = None) -> None:
        """Add `vectors`, float32 [n, dim], all or nothing. Raises DuplicateIdError, BadIdError, BadVectorError."""
        new = normalised(check_vectors(vectors, self.dim, ids))
        self._rows.append(ids, metadata)
        self._stored.add(new)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove a batch, all or nothing, without freeing its memory. Raises UnknownIdError if an id is unknown."""
        self._rows.remove(ids)

    def restore(self, rows: Rows, *blocks: Matrix) -> None:
        """Fill an empty index from storage: its rows and their normalised vectors, in blocks float32 [n, dim].

        A block may be a memory map: a single one is used in place, several are copied once. Raises IndexesError if
        the blocks do not match the rows.
        """
        total = sum(len(block) for block in blocks)
        if total != len(rows.ids) or any(block.shape[1:] != (self.dim,) for block in blocks):
            shapes = [block.shape for block in blocks]
            expected = f"{len(rows.ids)} vectors of dimension {self.dim}"
            raise IndexesError(f"expected {expected}, got blocks of shape {shapes}: rebuild the index")
        self._rows = rows
        self._stored.restore(blocks)

    def build(self) -> None:
        """Train the candidate generator if it is new, and add the rows that it lacks. Searches do this when needed."""
        with self._lock:
            total = len(self._stored)
            if self.kind == "flat" or total < self._exact_below or total == self._covered:
                return
            generator = self._generator or self._new(kind_by_size(total) if self.kind == AUTO else self.kind)
            self._stored.expect(scattered=False)
            if isinstance(generator, Hnsw):  # linking writes the rows in place, onto themselves
                self._stored.own()
            generator.extend(self._stored.flat, self.vectors)
            self._generator, self._covered = generator, total

    def _new(self, kind: str) -> CandidateGenerator:
        generator = GENERATORS[kind]()
        generator.settings |= {name: v for name, v in self._settings.items() if name in generator.settings}
        return generator

    @property
    def generator(self) -> CandidateGenerator | None:
        """The candidate generator, built if needed; None if every search is exact. Its settings may be changed."""
        self.build()
        return self._generator

    def save_graph(self, path: Path) -> FileRecord | None:
        """Write the graph or codes, without the vectors, durably; return the file record, or None if there are none."""
        self.build()
        return self._generator.save(path) if self._generator else None

    def load_graph(self, path: Path) -> None:
        """Read a file of `save_graph`, which may lack the last rows. Raises DamagedError, and IndexesError if flat."""
        if self.kind == "flat":
            raise IndexesError(f"{path}: a flat index has no graph to load")
        generator = self._new(kind_of(path) if self.kind == AUTO else self.kind)
        self._covered = generator.load(path, self._stored.flat)
        self._generator = generator

    def search(self, vectors: Matrix, k: int, where: Filter | None = None) -> list[Hits]:
        """Return the top k for `vectors`, float32 [n, dim], ties in row order. Raises the errors of `search_rows`."""
        check_k(k)
        return self._rows.hits(*self.search_rows(vectors, min(k, len(self) or 1), where))

    def search_rows(
        self, queries: Matrix, k: int, where: Filter | None = None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows (int64) and scores (float32), both [n, k], padded with −1 and −inf.

        `queries` is float32 [n, dim]. Raises IndexesError if k is below 1, BadVectorError if the queries are invalid,
        DamagedError if the file of the vectors was truncated.
        """
        check_k(k)
        check_length(self._stored.file, "the file of the vectors")
        queries = normalised(check_vectors(queries, self.dim))
        mask = self._rows.mask(where)
        allowed = len(self._stored) if mask is None else int(np.count_nonzero(mask))
        width = min(k, allowed)
        if not width or not len(queries):
            return padding(len(queries), k)
        self.build()
        if self._generating_pays(width, allowed):
            rows, scores = self._approximate(queries, width, mask)
        else:
            rows, scores = self._exact(queries, width, mask)
        if width == k:
            return rows, scores
        all_rows, all_scores = padding(len(queries), k)
        all_rows[:, :width], all_scores[:, :width] = rows, scores
        return all_rows, all_scores

    def _generating_pays(self, k: int, allowed: int) -> bool:
        """Return whether an approximate search, whose cost grows as fewer rows are allowed, beats an exact search."""
        if self._generator is None:
            return False
        total = len(self._stored)
        return allowed * allowed > self._generator.cost(with_reserve(k), total) * total

    def _approximate(self, queries: Matrix, k: int, mask: Mask | None) -> tuple[RowArray, ScoreArray]:
        assert self._generator is not None
        rows = self._generator.generate(queries, with_reserve(k), mask)
        self._stored.expect(scattered=True)
        rows, scores = best(rows, exact_scores(self.vectors, queries, rows), k)
        short = np.flatnonzero(rows[:, -1] < 0)
        if len(short):
            rows[short], scores[short] = self._exact(queries[short], k, mask)
        return rows, scores

    def _exact(self, queries: Matrix, k: int, mask: Mask | None) -> tuple[RowArray, ScoreArray]:
        """Return the top k rows that `mask` allows and their scores, both [n, k]; at least k rows are allowed."""
        self._stored.expect(scattered=False)
        try:
            return self._exact_scan(len(queries), k, mask).search(self.vectors, queries, k, mask)
        except MemoryError:  # of a GPU: use the CPU from now on
            with self._lock:
                self._scan = on_cpu = _certified(self._stored, self._flat_scan)
        return on_cpu.search(self.vectors, queries, k, mask)

    def live_rows(self) -> RowArray:
        """Return the rows of all live documents, int64 [n], ascending."""
        mask = self._rows.mask()
        return np.arange(len(self._stored)) if mask is None else np.flatnonzero(mask)

    def draw(self, size: int, seed: int) -> tuple[Matrix, RowArray]:
        """Return vectors (float32 [n, dim]) and rows (int64 [n], ascending) of at most `size` random documents."""
        live = self.live_rows()
        rows = np.sort(np.random.default_rng(seed).choice(live, min(size, len(live)), replace=False))
        return np.array(self.vectors[rows]), rows

    def search_exactly(self, queries: Matrix, k: int) -> tuple[RowArray, ScoreArray]:
        """Return the exact rows and scores, [n, k], of `queries` [n, dim]; k ≤ live rows. Raises BadVectorError."""
        return self._exact(normalised(check_vectors(queries, self.dim)), k, self._rows.mask())

    def _exact_scan(self, queries: int, k: int, mask: Mask | None) -> ExactScan:
        """Return the scan to use: the certified one if its codes pay for themselves and most rows must be compared."""
        total = len(self._stored)
        allowed = total if mask is None else int(np.count_nonzero(mask))
        if total < CODED_FROM or allowed * PICKED < total or k * FEW > total:
            return self._flat_scan
        self._asked += queries if queries < BLAS_BATCH else -(-queries // BATCHED)
        if self._asked < CODED_AFTER:
            return self._flat_scan
        with self._lock:
            if self._scan is None:
                custom_scan = self._make_scan() if self._make_scan else None
                self._scan = custom_scan or _certified(self._stored, self._flat_scan)
            elif not self._scan.pays:
                self._scan = self._flat_scan
            return self._scan


def _certified(stored: StoredVectors, scan: FlatScan) -> ExactScan:
    """Return the certified scan, or FAISS's if FAISS has a GPU or the certified one cannot run on this CPU."""
    if scan.on_gpu() or not ByteScan.available(stored.dim):
        return scan
    return ByteScan(load_faiss().omp_get_max_threads, stored.release)
