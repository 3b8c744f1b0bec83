"""Candidate generation by compressed 4-bit codes: in cells, of which a search scans only the nearest, or without cells.

IVF-PQ: Jégou et al., "Product quantization for nearest neighbor search", TPAMI 2011. Fast scan: André et al.,
"Accelerated nearest neighbor search with Quick ADC", ICMR 2017.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from indexes.interface import Mask, Matrix, RowArray
from indexes.vectors import faiss_checks
from indexes.vectors.faiss_files import bitmap, first_bytes, load_faiss, read, write

if TYPE_CHECKING:
    from indexes.disk.writing import FileRecord

SEED = 1234
BITS, CENTROIDS = 4, 16  # bits per code, and centroids per codebook
Settings = Mapping[str, float]


class _Codes:
    """Codes in a FAISS index, which is trained on a sample of the rows, and again once it is outgrown."""

    DIMENSIONS_PER_CODE = 2
    CODE_SPEED = 32.0  # number of codes that are compared in the time of one full vector
    _index: Any = None

    def extend(self, flat: Any, vectors: Matrix) -> None:
        """Add codes of new rows of `flat`; trains on the first call, and again once the index is outgrown."""
        if self._index is None or self._outgrown(len(vectors)):
            self._index = None
            self._index = self._train(vectors)
        block = 1 << 16
        for start in range(self._index.ntotal, len(vectors), block):
            self._index.add(self._pad(vectors[start : start + block]))

    def _outgrown(self, rows: int) -> bool:
        raise NotImplementedError

    def _train(self, vectors: Matrix) -> Any:
        raise NotImplementedError

    def _pad(self, vectors: Matrix) -> Matrix:
        """Return `vectors` [n, d] with zero columns appended as the index needs them; inner products stay the same."""
        missing = -vectors.shape[1] % (self._index.d if self._index else self.DIMENSIONS_PER_CODE)
        return np.pad(vectors, ((0, 0), (0, missing))) if missing else vectors

    def _sample(self, vectors: Matrix, size: int) -> Matrix:
        """Return some of the rows, at most `size`, padded."""
        size = min(len(vectors), size)
        return self._pad(
            vectors[np.sort(np.random.default_rng(SEED).choice(len(vectors), size, replace=False))]
        )

    def save(self, path: Path) -> FileRecord:
        """Write centroids and codes and return the file record. Raises IndexesError if writing fails."""
        return write(self._index, path, 0)


class IvfPq(_Codes):
    """A CandidateGenerator that uses IVF-PQ with fast scan.

    The rows lie in about 2√n cells, searched nearest first; each 4-bit code stands for two dimensions.

    Files of earlier versions, whose codes (two bits per dimension) are looked up one by one, are used unchanged.
    """

    FOURCCS: ClassVar[Sequence[bytes]] = (b"IwPf", b"IwPQ")
    GRID: ClassVar[Sequence[Settings]] = tuple(
        {"probed": 1 / p, "refine": r}
        for p, r in itertools.product((256, 128, 64, 32, 16, 12, 8, 4, 2), (1, 2, 4, 8, 16))
    )
    RESERVE = 256  # number of additional rows rescored, since many may share one code
    PROBED_PER_HIT = 40  # minimum number of rows compared per hit, whatever `probed` is
    LOOKED_UP = 4  # dimensions per byte of a code in files of earlier versions
    POINTS_PER_CENTROID = 39  # FAISS's lower limit of rows for training

    def __init__(self) -> None:
        self.settings: dict[str, float] = {"probed": 1 / 12, "refine": 2}

    def _outgrown(self, rows: int) -> bool:
        return self._cells(rows) >= 2 * int(self._index.nlist)

    def _cells(self, rows: int) -> int:
        return max(1, min(int(2 * math.sqrt(rows)), rows // self.POINTS_PER_CENTROID))

    def _train(self, vectors: Matrix) -> Any:
        faiss = load_faiss()
        cells = self._cells(len(vectors))
        points = self._sample(vectors, self.POINTS_PER_CENTROID * max(cells, 8 * CENTROIDS))
        dim = points.shape[1]
        index = faiss.IndexIVFPQFastScan(
            faiss.IndexFlatIP(dim),
            dim,
            cells,
            dim // self.DIMENSIONS_PER_CODE,
            BITS,
            faiss.METRIC_INNER_PRODUCT,
        )
        for clustering in (index.cp, index.pq.cp):
            clustering.seed, clustering.min_points_per_centroid = SEED, 1
        index.train(points)
        return index

    def cost(self, fetch: int, rows: int) -> float:
        """Return the cost of a query in vector comparisons: of codes, which are cheaper, and of rescored vectors."""
        return self._fetched(fetch) + self._probed(fetch, rows) / self.CODE_SPEED

    def _probed(self, fetch: int, rows: int) -> float:
        return max(rows * self.settings["probed"], self.PROBED_PER_HIT * fetch)

    def _fetched(self, fetch: int) -> int:
        return int(self.settings["refine"] * fetch) + self.RESERVE

    def generate(self, queries: Matrix, fetch: int, mask: Mask | None) -> RowArray:
        """Return several times `fetch` rows, int64 [n_queries, m], because codes rank them only roughly."""
        faiss = load_faiss()
        total, cells = self._index.ntotal, self._index.nlist
        allowed = total if mask is None else np.count_nonzero(mask)
        parameters = faiss.SearchParametersIVF(
            nprobe=min(cells, max(8, math.ceil(cells * self._probed(fetch, total) / allowed))),
            sel=None if mask is None else bitmap(mask),
        )
        rows: RowArray = self._index.search(self._pad(queries), self._fetched(fetch), params=parameters)[1]
        return rows

    def load(self, path: Path, flat: Any) -> int:
        """Read centroids and codes; return the number of rows. Raises DamagedError if the file is invalid."""
        old = first_bytes(path) == self.FOURCCS[1]
        size = self.LOOKED_UP if old else self.DIMENSIONS_PER_CODE
        dim = flat.d + -flat.d % size
        check = faiss_checks.ivfpq if old else faiss_checks.ivf_fast_scan
        index = read(path, functools.partial(check, subspaces=dim // size), flat, dim)
        self._index = index
        return int(index.ntotal)


class PqScan(_Codes):
    """A CandidateGenerator that uses fast scan: 4-bit codes of two dimensions each, all compared in registers."""

    FOURCCS: ClassVar[Sequence[bytes]] = (b"IPfs",)
    GRID: ClassVar[Sequence[Settings]] = tuple({"refine": r} for r in (1, 2, 4, 8, 16, 32, 64))
    POINTS = 1 << 16  # rows to train on

    def __init__(self) -> None:
        self.settings: dict[str, float] = {"refine": 8}
        self._trained_on = 0

    def _outgrown(self, rows: int) -> bool:
        return rows >= 4 * self._trained_on

    def _train(self, vectors: Matrix) -> Any:
        faiss = load_faiss()
        points, self._trained_on = self._sample(vectors, self.POINTS), len(vectors)
        dim = points.shape[1]
        index = faiss.IndexPQFastScan(dim, dim // self.DIMENSIONS_PER_CODE, BITS, faiss.METRIC_INNER_PRODUCT)
        index.pq.cp.seed, index.pq.cp.min_points_per_centroid = SEED, 1
        index.train(points)
        return index

    def cost(self, fetch: int, rows: int) -> float:
        """Return the cost of a query in vector comparisons: of codes, which are cheaper, and of rescored vectors."""
        return self._fetched(fetch) + rows / self.CODE_SPEED

    def _fetched(self, fetch: int) -> int:
        return int(self.settings["refine"] * fetch) + 64

    def generate(self, queries: Matrix, fetch: int, mask: Mask | None) -> RowArray:
        """Return several times `fetch` rows, int64 [n_queries, m], padded with −1.

        FAISS has no selector here, so more rows are fetched in proportion to the rows that `mask` forbids.
        """
        total = self._index.ntotal
        count = self._fetched(fetch)
        if mask is not None:
            count = math.ceil(count * mask.size / max(1, int(np.count_nonzero(mask))))
        rows: RowArray = self._index.search(self._pad(queries), min(count, total))[1]
        if mask is not None:
            rows = np.where((rows >= 0) & mask[rows], rows, -1)
        return rows

    def load(self, path: Path, flat: Any) -> int:
        """Read centroids and codes; return the number of rows. Raises DamagedError if the file is invalid."""
        dim = flat.d + -flat.d % self.DIMENSIONS_PER_CODE
        check = functools.partial(faiss_checks.fast_scan, subspaces=dim // self.DIMENSIONS_PER_CODE)
        index = read(path, check, flat, dim)
        self._index, self._trained_on = index, int(index.ntotal)
        return int(index.ntotal)
