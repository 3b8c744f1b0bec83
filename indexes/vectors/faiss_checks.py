"""Checks of the four kinds of FAISS files that we read, byte by byte, before FAISS reads them.

FAISS trusts its files: a link to a node that does not exist, or that is not on the link's level, makes it read and
write out of bounds. Here every size, link and row number is checked, and no bytes may follow the end. The most that
an attacker can still do is to store a graph with poor recall. The layout follows faiss/impl/index_write.cpp.
"""

from typing import Any

import numpy as np

from indexes.dtypes import AnyArray

BLOCK = 1 << 22  # number of neighbours checked at a time
BLOCK_ROWS = 32  # rows whose codes are stored together for comparison in registers
MOST_LEVELS = 64
MOST_LINKS = 1 << 16  # maximum number of links of a node, over all levels
MOST_EF = 1 << 16
# Maximum coordinate of a centroid; for parts of unit vectors and their differences, it is at most 2.
LARGEST = 16.0


class WrongError(ValueError):
    """Raised if a file is not as FAISS would have written it; the message says why."""


def require(holds: Any, otherwise: str) -> None:
    """Raise WrongError with the message `otherwise` unless the condition holds."""
    if not holds:
        raise WrongError(otherwise)


class File:
    """A file's bytes, read from beginning to end. Every method raises WrongError if the bytes are invalid."""

    def __init__(self, data: Any) -> None:
        self._data, self._at = data, 0

    @property
    def size(self) -> int:
        """Number of bytes of the whole file."""
        return len(self._data)

    def take(self, count: int, kind: str) -> AnyArray:
        """Return the next `count` values of dtype `kind`, an array [count], without copying."""
        size = np.dtype(kind).itemsize
        require(
            0 <= count <= (len(self._data) - self._at) // size,
            "it is shorter than the sizes that it declares",
        )
        array = np.frombuffer(self._data, kind, count, self._at)
        self._at += count * size
        return array

    def one(self, kind: str) -> int:
        """Return the next value of dtype `kind`."""
        return int(self.take(1, kind)[0])

    def vector(self, kind: str) -> AnyArray:
        """Return the next vector, an array [n] of dtype `kind` that is stored after its length n."""
        return self.take(self.one("<u8"), kind)

    def expect(self, *names: bytes) -> bytes:
        """Return the next four bytes, which must be one of `names`."""
        name = self.take(4, "|u1").tobytes()
        require(name in names, f"expected {names[0]!r}, got {name!r}")
        return name

    def header(self, dim: int, rows: int) -> int:
        """Read the header that every index begins with and return the number of its rows, at most `rows`."""
        stored_dim, total = self.one("<i4"), self.one("<i8")
        self.take(2, "<i8")  # unused
        trained, metric = self.one("|u1"), self.one("<i4")
        require(stored_dim == dim and 0 < total <= rows, "it belongs to another index")
        require(trained == 1 and metric == 0, "it is untrained or does not use inner products")
        return total

    def end(self) -> None:
        """Check that no bytes are left."""
        require(self._at == len(self._data), "bytes follow its end")


def hnsw(file: File, dim: int, rows: int) -> None:
    """Check a graph over `rows` vectors of dimension `dim`, which are stored elsewhere. Raises WrongError."""
    file.expect(b"IHNf")
    total = file.header(dim, rows)
    probabilities, ends = file.vector("<f8"), file.vector("<i4")
    levels, offsets, neighbours = file.vector("<i4"), file.vector("<i8"), file.vector("<i4")
    entry, top, construction, width, _ = file.take(5, "<i4").tolist()
    file.expect(b"null")
    file.end()
    require(
        0 < len(probabilities) <= MOST_LEVELS and ((probabilities >= 0) & (probabilities <= 1)).all(),
        "the probabilities of its levels are out of range",
    )
    require(
        len(ends) == len(probabilities) + 1 and ends[0] == 0 and ends[-1] <= MOST_LINKS,
        "the link counts of its levels are wrong",
    )
    require((ends[1:] > ends[:-1]).all(), "the link counts of its levels are wrong")
    require(1 <= construction <= MOST_EF and 1 <= width <= MOST_EF, "its ef parameters are out of range")
    require(
        len(levels) == total and levels.min() >= 1 and levels.max() < len(ends),
        "the levels of its nodes are wrong",
    )
    require(
        0 <= entry < total and levels[entry] == top + 1 == levels.max(),
        "its entry point is not on its top level",
    )
    require(
        len(offsets) == total + 1 and offsets[0] == 0 and offsets[-1] == len(neighbours),
        "its links are truncated",
    )
    require((offsets[1:] - offsets[:-1] == ends[levels]).all(), "its links do not match its levels")
    for start in range(0, len(neighbours), BLOCK):
        part = neighbours[start : start + BLOCK]
        require(part.min() >= -1 and part.max() < total, "its links point outside the index")
    _check_upper(levels, offsets, neighbours, ends)


def _check_upper(levels: AnyArray, offsets: AnyArray, neighbours: AnyArray, ends: AnyArray) -> None:
    """Check that nodes linked on a level above the lowest are on that level; all arrays are one-dimensional."""
    for level in range(1, int(levels.max())):
        first = offsets[:-1][levels > level] + ends[level]
        linked = neighbours[first[:, None] + np.arange(ends[level + 1] - ends[level])]
        require(
            ((linked < 0) | (levels[linked] > level)).all(),
            f"it links nodes on level {level} that are not on that level",
        )


def ivfpq(file: File, dim: int, rows: int, subspaces: int) -> None:
    """Check a file of cells of product-quantised vectors, `subspaces` codes per vector. Raises WrongError."""
    file.expect(b"IwPQ")
    total, cells = _check_cells(file, dim, rows)
    code_size = file.one("<u8")
    bits = _check_quantiser(file, dim, subspaces, range(1, 9))
    require(code_size == (subspaces * bits + 7) // 8, "its codes have the wrong size")
    file.expect(b"ilar")
    require(file.one("<u8") == cells and file.one("<u8") == code_size, "its cells do not match its header")
    _check_lists(file, [size for _, size in cell_sizes(file, cells)], code_size, total)
    file.end()


def ivf_fast_scan(file: File, dim: int, rows: int, subspaces: int) -> None:
    """Check a file of cells of four-bit codes, `subspaces` per row, in blocks of 32 rows. Raises WrongError."""
    file.expect(b"IwPf")
    total, cells = _check_cells(file, dim, rows)
    code_size, block, codes = file.one("<u8"), file.one("<i4"), file.one("<u8")
    implementation, batches = file.one("<i4"), file.one("<u8")
    even = subspaces + subspaces % 2
    layout = (code_size, block, codes, implementation, batches) == (even // 2, BLOCK_ROWS, even, 0, 0)
    require(layout, "it has another layout")
    _check_quantiser(file, dim, subspaces, range(4, 5))
    file.expect(b"ilbl")
    size = BLOCK_ROWS * even // 2
    shape = cells, (1 << 64) - 1, BLOCK_ROWS, size  # 2^64 − 1: codes in blocks have no size per row
    require(tuple(file.take(4, "<u8").tolist()) == shape, "its cells do not match its header")
    count, seen = 0, np.zeros(total, dtype=bool)
    for _ in range(cells):
        numbers = file.vector("<i8")
        require(len(file.vector("|u1")) == -(-len(numbers) // BLOCK_ROWS) * size, "codes are missing")
        count += _see(numbers, seen)
    require(count == total and seen.all(), "it does not hold each row once")
    file.end()


def _check_cells(file: File, dim: int, rows: int) -> tuple[int, int]:
    """Check the common header of cell indexes, after the name; return the numbers of rows and cells."""
    total = file.header(dim, rows)
    cells, probed = file.one("<u8"), file.one("<u8")
    require(1 <= probed <= cells <= total, "it has no cells, or more cells than rows")
    file.expect(b"IxFI")
    require(file.header(dim, cells) == cells, "centroids are missing")
    _check_centroids(file.vector("<f4"), cells * dim)
    require(file.one("|u1") == 0 and not len(file.vector("<i8")), "it has a direct map")
    require(file.one("|u1") in (0, 1), "its codes are of an unknown kind")
    return total, cells


def _see(numbers: AnyArray, seen: AnyArray) -> int:
    if len(numbers):
        require(
            numbers.min() >= 0 and numbers.max() < len(seen), "its codes belong to rows outside the index"
        )
        seen[numbers] = True
    return len(numbers)


def cell_sizes(file: File, cells: int) -> list[tuple[int, int]]:
    """Return the index and the size of each non-empty cell; a file lists all sizes, or pairs of index and size."""
    full = file.expect(b"full", b"sprs") == b"full"
    sizes = file.vector("<i8")
    numbers = np.arange(len(sizes))
    if not full:
        require(len(sizes) % 2 == 0, "its cells are truncated")
        numbers, sizes = sizes[::2], sizes[1::2]
        require((numbers[1:] > numbers[:-1]).all(), "its cells are not in order")
        require(
            not len(numbers) or (numbers[0] >= 0 and numbers[-1] < cells),
            "it has rows in cells that do not exist",
        )
    require(len(sizes) <= cells if not full else len(sizes) == cells, "the sizes of its cells are missing")
    require((sizes >= 0).all(), "a cell has a negative size")
    return [(cell, size) for cell, size in zip(numbers.tolist(), sizes.tolist(), strict=True) if size]


def _check_lists(file: File, sizes: list[int], code_size: int, total: int) -> None:
    require(sum(sizes) == total, "its cells do not hold all rows")
    seen = np.zeros(total, dtype=bool)
    for size in sizes:
        file.take(size * code_size, "|u1")
        _see(file.take(size, "<i8"), seen)
    require(seen.all(), "it holds a row twice")


def fast_scan(file: File, dim: int, rows: int, subspaces: int) -> None:
    """Check a file of four-bit codes, `subspaces` per row, in blocks of 32 rows. Raises WrongError."""
    file.expect(b"IPfs")
    total = file.header(dim, rows)
    _check_quantiser(file, dim, subspaces, range(4, 5))
    implementation, block, batches = file.take(3, "<i4").tolist()
    require((implementation, block, batches) == (0, BLOCK_ROWS, 0), "it has another layout")
    held, codes = file.one("<u8"), file.one("<u8")
    require(
        held == total + -total % BLOCK_ROWS and codes == subspaces + subspaces % 2, "its blocks are truncated"
    )
    require(len(file.vector("|u1")) * 2 == held * codes, "codes are missing")
    file.end()


def _check_quantiser(file: File, dim: int, subspaces: int, bits: range) -> int:
    """Check a product quantiser and return the number of bits per code."""
    stored_dim, parts, size = (file.one("<u8") for _ in range(3))
    require((stored_dim, parts) == (dim, subspaces) and size in bits, "its codes are of another kind")
    _check_centroids(file.vector("<f4"), dim << size)
    return size


def _check_centroids(values: AnyArray, count: int) -> None:
    require(len(values) == count, "centroids are missing")
    for start in range(0, count, BLOCK):
        require(
            (np.abs(values[start : start + BLOCK]) <= LARGEST).all(),
            "a centroid is too large for unit vectors",
        )
