"""The three kinds of FAISS files that we write, checked byte by byte before FAISS reads them.

FAISS believes its files: a neighbour that does not exist, or does not stand on the level where it is linked, makes it
read and write outside its memory. Here every size, every link and every row number is checked; nothing may follow.
What is left to an attacker is a graph that finds little. The layout is that of faiss/impl/index_write.cpp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from indexes.dtypes import AnyArray

BLOCK = 1 << 22  # neighbours looked at together
MOST_LEVELS = 64
MOST_LINKS = 1 << 16  # of a node, on all levels
MOST_EF = 1 << 16
LARGEST = (
    16.0  # coordinate of a centroid; those of parts of unit vectors, and of their differences, are at most 2
)


class WrongError(ValueError):
    """A file is not as FAISS would have written it; the text says why."""


def require(holds: Any, otherwise: str) -> None:
    """Raise WrongError unless a condition holds."""
    if not holds:
        raise WrongError(otherwise)


class File:
    """A file's bytes, taken from its begin to its end."""

    def __init__(self, data: Any) -> None:
        self._data, self._at = data, 0

    def take(self, count: int, kind: str) -> AnyArray:
        """Return the next `count` values, where they lie."""
        size = np.dtype(kind).itemsize
        require(0 <= count <= (len(self._data) - self._at) // size, "it is too short for what it announces")
        array = np.frombuffer(self._data, kind, count, self._at)
        self._at += count * size
        return array

    def one(self, kind: str) -> int:
        """Return the next value."""
        return int(self.take(1, kind)[0])

    def vector(self, kind: str) -> AnyArray:
        """Return a vector, which is stored behind its length."""
        return self.take(self.one("<u8"), kind)

    def expect(self, *names: bytes) -> bytes:
        """Return the next four bytes, which must be one of `names`."""
        found = self.take(4, "|u1").tobytes()
        require(found in names, f"it holds {found!r} where {names[0]!r} should be")
        return found

    def header(self, dim: int, rows: int) -> int:
        """Read what every index begins with and return the number of its rows, at most `rows`."""
        found, total = self.one("<i4"), self.one("<i8")
        self.take(2, "<i8")  # of no use
        trained, metric = self.one("|u1"), self.one("<i4")
        require(found == dim and 0 < total <= rows, "it belongs to another index")
        require(trained == 1 and metric == 0, "it is not trained for inner products")
        return total

    def end(self) -> None:
        """Require that nothing is left."""
        require(self._at == len(self._data), "something follows its end")


def hnsw(file: File, dim: int, rows: int) -> None:
    """Check a graph without vectors: `rows` vectors of `dim` numbers lie elsewhere. Raises WrongError."""
    file.expect(b"IHNf")
    total = file.header(dim, rows)
    chances, ends = file.vector("<f8"), file.vector("<i4")
    levels, offsets, neighbours = file.vector("<i4"), file.vector("<i8"), file.vector("<i4")
    entry, top, construction, width, _ = file.take(5, "<i4").tolist()
    file.expect(b"null")
    file.end()
    require(
        0 < len(chances) <= MOST_LEVELS and ((chances >= 0) & (chances <= 1)).all(),
        "its levels' chances are none",
    )
    require(len(ends) == len(chances) + 1 and ends[0] == 0 and ends[-1] <= MOST_LINKS, "its levels are wrong")
    require((ends[1:] > ends[:-1]).all(), "its levels are wrong")
    require(1 <= construction <= MOST_EF and 1 <= width <= MOST_EF, "its widths are out of range")
    require(
        len(levels) == total and levels.min() >= 1 and levels.max() < len(ends), "its nodes' levels are wrong"
    )
    require(
        0 <= entry < total and levels[entry] == top + 1 == levels.max(),
        "its entry point is not on its top level",
    )
    require(
        len(offsets) == total + 1 and offsets[0] == 0 and offsets[-1] == len(neighbours),
        "its links are cut off",
    )
    require((offsets[1:] - offsets[:-1] == ends[levels]).all(), "its links do not fit its levels")
    for start in range(0, len(neighbours), BLOCK):
        part = neighbours[start : start + BLOCK]
        require(part.min() >= -1 and part.max() < total, "its links point outside the index")
    _check_upper(levels, offsets, neighbours, ends)


def _check_upper(levels: AnyArray, offsets: AnyArray, neighbours: AnyArray, ends: AnyArray) -> None:
    """Require that what is linked on a level above the lowest stands there."""
    for level in range(1, int(levels.max())):
        first = offsets[:-1][levels > level] + ends[level]
        linked = neighbours[first[:, None] + np.arange(ends[level + 1] - ends[level])]
        require(
            ((linked < 0) | (levels[linked] > level)).all(),
            f"it links nodes on level {level} that are not there",
        )


def ivfpq(file: File, dim: int, rows: int, subspaces: int) -> None:
    """Check cells of product-quantised vectors, each in `subspaces` codes. Raises WrongError."""
    file.expect(b"IwPQ")
    total = file.header(dim, rows)
    cells, probed = file.one("<u8"), file.one("<u8")
    require(1 <= probed <= cells <= total, "it has no cells, or more than rows")
    file.expect(b"IxFI")
    require(file.header(dim, cells) == cells, "it lacks centroids")
    _check_centroids(file.vector("<f4"), cells * dim)
    require(file.one("|u1") == 0 and not len(file.vector("<i8")), "it has a direct map")
    require(file.one("|u1") in (0, 1), "its codes are of no kind")
    code_size = file.one("<u8")
    bits = _check_quantiser(file, dim, subspaces, range(1, 9))
    require(code_size == (subspaces * bits + 7) // 8, "its codes have the wrong size")
    file.expect(b"ilar")
    require(file.one("<u8") == cells and file.one("<u8") == code_size, "its cells do not fit together")
    _check_lists(file, _sizes(file, cells), code_size, total)
    file.end()


def _sizes(file: File, cells: int) -> list[int]:
    """Return how many rows each cell with rows has: of all cells, or of some by number."""
    full = file.expect(b"full", b"sprs") == b"full"
    sizes = file.vector("<i8")
    if not full:
        require(len(sizes) % 2 == 0, "its cells are cut off")
        numbers, sizes = sizes[::2], sizes[1::2]
        require((numbers[1:] > numbers[:-1]).all(), "its cells are not in order")
        require(
            not len(numbers) or (numbers[0] >= 0 and numbers[-1] < cells),
            "it has rows in cells that do not exist",
        )
    require(len(sizes) <= cells if not full else len(sizes) == cells, "it does not say what its cells hold")
    require((sizes >= 0).all(), "a cell holds less than nothing")
    return [size for size in sizes.tolist() if size]


def _check_lists(file: File, sizes: list[int], code_size: int, total: int) -> None:
    require(sum(sizes) == total, "its cells do not hold all rows")
    seen = np.zeros(total, dtype=bool)
    for size in sizes:
        file.take(size * code_size, "|u1")
        ids = file.take(size, "<i8")
        require(ids.min() >= 0 and ids.max() < total, "its codes belong to rows outside the index")
        seen[ids] = True
    require(seen.all(), "it holds a row twice")


def fast_scan(file: File, dim: int, rows: int, subspaces: int) -> None:
    """Check four-bit codes, `subspaces` a row, in blocks of 32 rows. Raises WrongError."""
    file.expect(b"IPfs")
    total = file.header(dim, rows)
    _check_quantiser(file, dim, subspaces, range(4, 5))
    implementation, block, batches = file.take(3, "<i4").tolist()
    require((implementation, block, batches) == (0, 32, 0), "it is laid out in another way")
    held, codes = file.one("<u8"), file.one("<u8")
    require(held == total + -total % 32 and codes == subspaces + subspaces % 2, "its blocks are cut off")
    require(len(file.vector("|u1")) * 2 == held * codes, "it lacks codes")
    file.end()


def _check_quantiser(file: File, dim: int, subspaces: int, bits: range) -> int:
    """Check a product quantiser and return how many bits a code has."""
    found, parts, size = (file.one("<u8") for _ in range(3))
    require((found, parts) == (dim, subspaces) and size in bits, "its codes are of another kind")
    _check_centroids(file.vector("<f4"), dim << size)
    return size


def _check_centroids(values: AnyArray, count: int) -> None:
    require(len(values) == count, "it lacks centroids")
    for start in range(0, count, BLOCK):
        require(
            (np.abs(values[start : start + BLOCK]) <= LARGEST).all(), "a centroid is not near unit vectors"
        )
