"""Approximate neighbours by FAISS over vectors that a flat index keeps: an HNSW graph, or IVF with PQ codes.

Neither holds the raw vectors a second time, and neither scores: they propose rows, in no promised order.
HNSW: Malkov and Yashunin, https://arxiv.org/abs/1603.09320. IVF-PQ: Jégou et al., "Product quantization for
nearest neighbor search", TPAMI 2011.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from indexes.interface import DamagedError, IndexesError, Mask, Matrix, MissingExtraError, RowArray

SEED = 1234


@functools.cache
def load_faiss() -> Any:
    """Import faiss on first use. Raises MissingExtraError."""
    try:
        import faiss
    except ModuleNotFoundError as e:
        if e.name != "faiss":
            raise
        raise MissingExtraError("vector search", "cpu") from e
    return faiss


def bitmap(mask: Mask) -> Any:
    """Return the FAISS selector of the rows that `mask` allows."""
    return load_faiss().IDSelectorBitmap(np.packbits(mask, bitorder="little"))


class Proposer(Protocol):
    """What stands between a query and the scan of everything."""

    def extend(self, flat: Any, vectors: Matrix) -> None:
        """Take in the rows of `flat` (an IndexFlatIP; `vectors` [n, d] is a view of it) not taken in yet."""
        ...

    def cost(self, fetch: int, rows: int) -> float:
        """Return about how many vector comparisons a query costs, when `rows` rows are indexed."""
        ...

    def propose(self, queries: Matrix, fetch: int, mask: Mask | None) -> RowArray:
        """Return likely rows [n_queries, fetch or more], filled with −1; only rows that `mask` allows."""
        ...

    def save(self, path: Path) -> None:
        """Write everything but the raw vectors to a file."""
        ...

    def load(self, path: Path, flat: Any) -> int:
        """Read what `save` wrote and return how many rows it knows. Raises DamagedError."""
        ...


class Hnsw:
    """A navigable small-world graph; recall against speed is set by `ef`, the width of the search."""

    LINKS, EF_CONSTRUCTION, EF = 32, 100, 128

    def __init__(self) -> None:
        self._index: Any = None

    def extend(self, flat: Any, vectors: Matrix) -> None:
        """Link the new rows into the graph."""
        faiss = load_faiss()
        if self._index is None:
            index = faiss.IndexHNSWFlat(flat.d, self.LINKS, faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction = self.EF_CONSTRUCTION
            _attach(index, flat)
            self._index = index
        index, self._index = self._index, None  # a graph left half built (Ctrl-C) is not used again
        total = flat.ntotal
        # `add` also appends to the storage. The rows are there already, so it is made to write them onto
        # themselves: no second copy of the vectors exists at any time.
        flat.ntotal = index.ntotal
        try:
            index.add(vectors[index.ntotal :])
        finally:
            flat.ntotal = total
        self._index = index

    def cost(self, fetch: int, rows: int) -> float:
        """Every node on the way is compared with its links, of which about half were seen before."""
        return self.LINKS * self._width(fetch)

    def _width(self, fetch: int) -> int:
        return max(self.EF, 2 * fetch)

    def propose(self, queries: Matrix, fetch: int, mask: Mask | None) -> RowArray:
        """Walk the graph, the wider the fewer rows are allowed: forbidden ones are passed, not returned."""
        faiss = load_faiss()
        ef = self._width(fetch)
        if mask is None:
            parameters = faiss.SearchParametersHNSW(efSearch=ef)
        else:
            wider = math.ceil(ef * mask.size / mask.sum())
            parameters = faiss.SearchParametersHNSW(efSearch=wider, sel=bitmap(mask))
        rows: RowArray = self._index.search(queries, fetch, params=parameters)[1]
        return rows

    def save(self, path: Path) -> None:
        """Write the graph alone."""
        _write(self._index, path, load_faiss().IO_FLAG_SKIP_STORAGE)

    def load(self, path: Path, flat: Any) -> int:
        """Read the graph and hang it on the vectors in `flat`."""
        faiss = load_faiss()
        index = _read(path, faiss.IndexHNSWFlat, flat)
        neighbours = faiss.vector_to_array(index.hnsw.neighbors)
        ends = faiss.vector_to_array(index.hnsw.offsets)
        if (
            not -1 <= index.hnsw.entry_point < index.ntotal
            or len(ends) != index.ntotal + 1
            or ends[-1] != len(neighbours)
            or (neighbours >= index.ntotal).any()
        ):
            raise _damaged(path, "its links point outside the index")
        _attach(index, flat)
        self._index = index
        return int(index.ntotal)


class IvfPq:
    """Cells of about √n/4 rows, searched nearest first by codes of a quarter byte a dimension."""

    PROBED = 1 / 16  # share of the rows a query looks at …
    PROBED_PER_HIT = 40  # … but at least so many rows a hit
    DIMENSIONS_PER_BYTE = 4
    CODE_SPEED = 8.0  # codes compared in the time of one full vector
    POINTS_PER_CENTROID = 39  # FAISS's own lower limit for training

    def __init__(self) -> None:
        self._index: Any = None

    def extend(self, flat: Any, vectors: Matrix) -> None:
        """Train on the first call, and again when four times as many rows deserve twice the cells; add codes."""
        if self._index is None or self._cells(len(vectors)) >= 2 * self._index.nlist:
            self._index = None
            self._index = self._trained(vectors)
        block = 1 << 16
        for start in range(self._index.ntotal, len(vectors), block):
            self._index.add(self._padded(vectors[start : start + block]))

    def _cells(self, rows: int) -> int:
        return max(1, min(int(4 * math.sqrt(rows)), rows // self.POINTS_PER_CENTROID))

    def _padded(self, vectors: Matrix) -> Matrix:
        """Append zero columns until the codes' bytes divide the dimension; no inner product changes."""
        missing = -vectors.shape[1] % self.DIMENSIONS_PER_BYTE
        return np.pad(vectors, ((0, 0), (0, missing))) if missing else vectors

    def _trained(self, vectors: Matrix) -> Any:
        faiss = load_faiss()
        rows, cells = len(vectors), self._cells(len(vectors))
        bits = max(1, min(8, int(math.log2(max(2, rows // self.POINTS_PER_CENTROID)))))
        size = min(rows, 64 * max(cells, 1 << bits))
        sample = np.sort(np.random.default_rng(SEED).choice(rows, size, replace=False))
        points = self._padded(vectors[sample])
        dim = points.shape[1]
        index = faiss.IndexIVFPQ(
            faiss.IndexFlatIP(dim),
            dim,
            cells,
            dim // self.DIMENSIONS_PER_BYTE,
            bits,
            faiss.METRIC_INNER_PRODUCT,
        )
        for clustering in (index.cp, index.pq.cp):
            clustering.seed, clustering.min_points_per_centroid = SEED, 1
        index.train(points)
        return index

    def cost(self, fetch: int, rows: int) -> float:
        """Return the codes compared, each cheaper than a vector, and the vectors compared afterwards."""
        return self._fetched(fetch) + self._probed(fetch, rows) / self.CODE_SPEED

    def _probed(self, fetch: int, rows: int) -> float:
        return max(rows * self.PROBED, self.PROBED_PER_HIT * fetch)

    def _fetched(self, fetch: int) -> int:
        return 4 * fetch + 64

    def propose(self, queries: Matrix, fetch: int, mask: Mask | None) -> RowArray:
        """Return several times as many rows as wanted, since codes order them only roughly."""
        faiss = load_faiss()
        total, cells = self._index.ntotal, self._index.nlist
        allowed = total if mask is None else np.count_nonzero(mask)
        parameters = faiss.SearchParametersIVF(
            nprobe=min(cells, max(8, math.ceil(cells * self._probed(fetch, total) / allowed))),
            sel=None if mask is None else bitmap(mask),
        )
        rows: RowArray = self._index.search(self._padded(queries), self._fetched(fetch), params=parameters)[1]
        return rows

    def save(self, path: Path) -> None:
        """Write centroids and codes."""
        _write(self._index, path, 0)

    def load(self, path: Path, flat: Any) -> int:
        """Read centroids and codes."""
        faiss = load_faiss()
        index = _read(path, faiss.IndexIVFPQ, flat, dim=flat.d + -flat.d % self.DIMENSIONS_PER_BYTE)
        lists = index.invlists
        sizes = [lists.list_size(i) for i in range(index.nlist)]
        ids = [faiss.rev_swig_ptr(lists.get_ids(i), n) for i, n in enumerate(sizes) if n]
        if sum(sizes) != index.ntotal or any(((part < 0) | (part >= index.ntotal)).any() for part in ids):
            raise _damaged(path, "its codes belong to rows outside the index")
        self._index = index
        return int(index.ntotal)


KINDS: dict[str, type[Hnsw] | type[IvfPq]] = {"hnsw": Hnsw, "ivfpq": IvfPq}


def _attach(graph: Any, flat: Any) -> None:
    """Make the graph use `flat` instead of a storage of its own; FAISS keeps a bare pointer to it.

    The empty storage a new graph was made with (some hundred bytes) is not freed: SWIG's way to do so corrupts
    its own type table.
    """
    graph.storage, graph.own_fields = flat, False
    graph.referenced_objects = [flat]


def _write(index: Any, path: Path, flags: int) -> None:
    try:
        load_faiss().write_index(index, str(path), flags)
    except RuntimeError as e:
        raise IndexesError(f"writing {path} failed: {_reason(e)}") from e


def _read(path: Path, kind: Any, flat: Any, dim: int | None = None) -> Any:
    faiss = load_faiss()
    try:
        with _no_vector_above(path.stat().st_size):
            index = faiss.read_index(str(path), faiss.IO_FLAG_SKIP_PRECOMPUTE_TABLE)  # a table for L2 alone
    except (OSError, RuntimeError, MemoryError) as e:
        raise _damaged(path, _reason(e)) from e
    if not isinstance(index, kind) or index.d != (dim or flat.d) or index.ntotal > flat.ntotal:
        raise _damaged(path, "it belongs to another index")
    return index


@contextlib.contextmanager
def _no_vector_above(size: int) -> Iterator[None]:
    """Keep FAISS from filling the memory because a damaged file claims a vector longer than itself."""
    faiss = load_faiss()
    if not hasattr(faiss, "set_deserialization_vector_byte_limit"):  # older releases have no such limit
        yield
        return
    before = faiss.get_deserialization_vector_byte_limit()
    faiss.set_deserialization_vector_byte_limit(size)
    try:
        yield
    finally:
        faiss.set_deserialization_vector_byte_limit(before)


def _reason(error: Exception) -> str:
    """Return FAISS's message without its C++ signature and source file."""
    return str(error).rsplit(": ", 1)[-1].strip() or type(error).__name__


def _damaged(path: Path, why: str) -> DamagedError:
    return DamagedError(f"{path} cannot be used: {why}; restore it from a backup, or rebuild the index")
