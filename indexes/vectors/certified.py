"""Exact search in two steps: a coarse scan of 8-bit codes with a proven error bound, then scores of what is left.

A row x is stored as x̂ = s·c (s = max|xᵢ|/127, c whole numbers of one byte) with the length r of what that took
away, r = ‖x − x̂‖; a query q likewise, ‖q − q̂‖ = e. By Cauchy and Schwarz

    |q·x − q̂·x̂| = |q̂·(x − x̂) + (q − q̂)·x| ≤ ‖q̂‖·r + e·N,        N = length of the longest row.

It holds for vectors of any length (below 1e30, for float32's sake); for unit vectors N = 1, and in 256 dimensions
the bound is about .014. q̂·x̂ is a whole number times two scales, so it is computed exactly but for a few roundings
to float32; sixteen units of 2⁻²⁴·(‖q‖ + ‖q̂‖)·N cover these, and that of the score itself. So a row's score lies
between q̂·x̂ − bound and q̂·x̂ + bound, and when k rows surely reach a threshold, a row that surely does not is not
among the k best. All others are scored. So the answer is that of scoring every row, and this is proven, not likely.

Scores are summed in float64 and rounded to float32 once, whatever proposed the row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from indexes import native
from indexes.dtypes import UInt64Array
from indexes.interface import Mask, Matrix, RowArray, ScoreArray

PANEL, WIDTH = 64, 6  # as in scan.c
BLOCK = 1 << 16  # rows coded together; only the last block is ever coded again
MOST_DIM = 4096  # up to here a row's rounding takes away less than a quarter of its length
SLACK = 2.0**-20  # sixteen roundings to float32
ROOM = 1024  # candidates held a query, or 16 k: the threshold rises each time they are full
BUFFER_BYTES = 1 << 25  # of candidates held at a time, in each thread
BYTES = 20  # of one candidate: row, value, upper, key
NO_KEY = np.iinfo(np.uint64).max
FEW_SCORED = 32  # scoring one row in so many costs as much as FAISS's scan
# A row that is scored brings a quarter of a mebibyte of its file into memory, so one in a few hundred brings all of it.
TOUCHED, LARGE = 512, 1 << 28
SERIAL = 1 << 27  # byte products below which a second thread costs more than it brings


class ExactScan(Protocol):
    """Finds the best rows of all, exactly. Searches may run in several threads at once."""

    @property
    def pays(self) -> bool:
        """Say whether it has been worth its while: not where most rows are so alike that it must score them."""
        ...

    def search(
        self, vectors: Matrix, queries: Matrix, k: int, mask: Mask | None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows and scores [n, k], best first, equal ones in row order.

        `vectors` [rows, dim] only ever grows between two calls; `mask` allows at least k rows.
        """
        ...


class _Block(NamedTuple):
    codes: npt.NDArray[np.uint8]
    scales: ScoreArray
    errors: ScoreArray  # −inf where there is no row
    longest: float


def _encode(vectors: Matrix) -> _Block:
    rows, dim = vectors.shape
    padded, room = -(-dim // 4) * 4, -(-rows // PANEL) * PANEL
    codes = np.empty(room * padded, dtype=np.uint8)
    scales, errors = np.zeros(room, dtype=np.float32), np.full(room, -np.inf, dtype=np.float32)
    encode = native.load().encode
    longest = native.call(encode, np.ascontiguousarray(vectors), rows, dim, padded, codes, scales, errors)
    return _Block(codes, scales, errors, longest)


@dataclass(frozen=True)
class _Queries:
    """Coded queries; the scan compares in units of a query's scale."""

    vectors: Matrix
    codes: npt.NDArray[np.int8]
    offset: npt.NDArray[np.int32]  # takes back the 128 that was added to the rows' codes
    scale: npt.NDArray[np.float64]
    weight: ScoreArray  # ‖q̂‖ / scale: what a row's error counts
    shared: npt.NDArray[np.float64]  # e·N and the roundings / scale: the part of the bound that all rows have

    @classmethod
    def code(cls, vectors: Matrix, longest: float) -> _Queries:
        """Round as the rows are rounded, and lay the codes out as scan.c reads them."""
        count, dim = vectors.shape
        scale = np.abs(vectors).max(axis=1, initial=0).astype(np.float64) / 127
        scale[scale < 1e-30] = 1
        codes = np.zeros((count, -(-dim // 4) * 4), dtype=np.int8)
        codes[:, :dim] = np.rint(vectors / scale[:, None])
        rounded = codes[:, :dim] * scale[:, None]
        length, own = _lengths(rounded), _lengths(vectors)
        shared = (_lengths(vectors - rounded) + SLACK * (own + length)) * longest
        full = count // WIDTH * WIDTH
        tiles = codes[:full].reshape(-1, WIDTH, codes.shape[1] // 4, 4).transpose(0, 2, 1, 3)
        return cls(
            vectors,
            np.concatenate([tiles.ravel(), codes[full:].ravel()]),
            -128 * codes.sum(axis=1, dtype=np.int32),
            scale,
            (length / scale * (1 + 1e-6)).astype(np.float32),
            shared / scale,
        )


def _lengths(vectors: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    squares: npt.NDArray[np.float64] = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    return np.sqrt(squares)


class ByteScan:
    """ExactScan on the processor. Codes take dim + 8 bytes a row beside the vectors' 4·dim; removal is the mask's."""

    def __init__(
        self, threads: Callable[[], int] = lambda: 1, release: Callable[[], None] = lambda: None
    ) -> None:
        """Make a scan without codes; `threads` says before each search how many threads it may use.

        `release` is called after each block of vectors was coded: as a whole they are not read again soon; and when so
        many of a large file's rows were scored since that all of it would stay in memory.
        """
        self._threads, self._release = threads, release
        self._blocks: list[_Block] = []
        self._coded = 0
        self._seen = self._scored = 0  # rows, over all queries so far
        self._touched = 0  # scored since the last release
        self._lock = threading.Lock()

    @property
    def pays(self) -> bool:
        """Say whether few rows had to be scored."""
        return self._scored * FEW_SCORED <= self._seen + BLOCK * FEW_SCORED

    @staticmethod
    def available(dim: int) -> bool:
        """Say whether this machine can scan vectors of this dimension."""
        return dim <= MOST_DIM and native.load() is not None

    def _cover(self, vectors: Matrix) -> list[_Block]:
        """Code the rows that came since the last call."""
        with self._lock:
            if self._coded < len(vectors):
                whole = self._coded // BLOCK
                starts = range(whole * BLOCK, len(vectors), BLOCK)
                self._blocks = self._blocks[:whole]
                for start in starts:
                    self._blocks = [*self._blocks, _encode(vectors[start : start + BLOCK])]
                    self._release()
                self._coded = len(vectors)
            return self._blocks

    def search(
        self, vectors: Matrix, queries: Matrix, k: int, mask: Mask | None
    ) -> tuple[RowArray, ScoreArray]:
        """Scan the codes in parts: many queries are shared out among the threads, of few queries the rows."""
        blocks = _allowed(self._cover(vectors), mask)
        room = min(max(ROOM, 16 * k), len(vectors)) + 2 * PANEL
        size = max(WIDTH, BUFFER_BYTES // (BYTES * room) // WIDTH * WIDTH)
        threads = self._threads() if len(queries) * vectors.size >= SERIAL else 1
        size = min(size, max(4 * WIDTH, -(-len(queries) // threads // WIDTH) * WIDTH))
        parts = [queries[start : start + size] for start in range(0, len(queries), size)]
        shares = max(1, threads // len(parts))
        longest = max(block.longest for block in blocks)

        def run(part: Matrix, share: int) -> UInt64Array:
            mine = list(enumerate(blocks))[share::shares]
            pool = _scan(vectors, mine, _Queries.code(part, longest), k, room)
            keys = pool.best()
            with self._lock:
                self._scored += pool.scored
                self._touched += pool.scored
                if self._touched * TOUCHED > len(vectors) and vectors.nbytes > LARGE:
                    self._release()
                    self._touched = 0
            return keys

        self._seen += len(queries) * len(vectors)
        work = [(part, share) for part in parts for share in range(shares)]
        if threads == 1:
            found = [run(*w) for w in work]
        else:
            with ThreadPoolExecutor(min(threads, len(work))) as pool:
                found = list(pool.map(run, *zip(*work, strict=True)))
        return _decode(
            np.concatenate([_best(found[i : i + shares], k) for i in range(0, len(found), shares)])
        )


def _allowed(blocks: list[_Block], mask: Mask | None) -> list[_Block]:
    """Give the rows that the mask forbids an error of −inf: no threshold lets them in."""
    if mask is None:
        return blocks
    parts: Iterator[Mask] = (mask[start : start + BLOCK] for start in range(0, len(mask), BLOCK))
    masked = []
    for block, part in zip(blocks, parts, strict=True):
        errors = block.errors.copy()
        errors[: len(part)][~part] = -np.inf
        masked.append(block._replace(errors=errors))
    return masked


def _scan(
    vectors: Matrix, blocks: list[tuple[int, _Block]], queries: _Queries, k: int, room: int
) -> _Candidates:
    """Return the rows of some blocks that may be among the best."""
    library, pool = native.load(), _Candidates(vectors, queries, k, room)
    padded = -(-vectors.shape[1] // 4) * 4
    for number, block in blocks:
        row = 0
        while row < len(block.scales):
            row = native.call(
                library.scan, block.codes, block.scales, block.errors, padded, number * BLOCK, row,
                len(block.scales), len(queries.vectors), queries.codes, queries.offset, queries.weight,
                pool.threshold, room, pool.count, pool.rows, pool.value, pool.upper,
            )  # fmt: skip
            if pool.count.max(initial=0) > room - 2 * PANEL:
                pool.make_room()
    return pool


class _Candidates:
    """The rows that may be among the k best of each query. One leaves by proof only: bound or score."""

    def __init__(self, vectors: Matrix, queries: _Queries, k: int, room: int) -> None:
        count = len(queries.vectors)
        self.vectors, self.queries, self.k, self.room = vectors, queries, k, room
        self.threshold = np.full(
            count, np.finfo(np.float32).min, dtype=np.float32
        )  # above −inf: no forbidden row
        self.scored = 0
        self.count = np.zeros(count, dtype=np.int64)
        self.rows = np.empty((count, room), dtype=np.int32)
        self.value = np.empty((count, room), dtype=np.float32)  # q̂·x̂
        self.upper = np.empty((count, room), dtype=np.float32)  # and its row's part of the bound on top
        self._spread = np.nextafter((2 * queries.shared).astype(np.float32), np.float32(np.inf))
        self._scratch = np.empty(room, dtype=np.float32)

    def _tighten(self, least: int) -> None:
        native.call(
            native.load().tighten, len(self.count), self.k, least, self.room, self._spread, self.threshold,
            self.count, self.rows, self.value, self.upper, self._scratch,
        )  # fmt: skip

    def make_room(self) -> None:
        """Where more than half is full, drop what the bound rules out; where that is too little, score and keep k."""
        half = max(self.k, self.room // 2)
        self._tighten(half)
        for q in np.flatnonzero(self.count > half):
            keys = self._keys(slice(q, q + 1))[0]
            kept = np.argsort(keys)[: self.k]
            for part in (self.rows, self.value, self.upper):
                part[q, : len(kept)] = part[q, kept]
            self.count[q] = len(kept)
            least = float(_decode(keys[kept[-1:]])[1][0]) / self.queries.scale[q]
            self.threshold[q] = max(self.threshold[q], np.float32(least - self.queries.shared[q]))

    def _keys(self, part: slice) -> UInt64Array:
        count = self.count[part]
        keys = np.empty((len(count), int(count.max(initial=0))), dtype=np.uint64)
        vectors, queries = self.vectors, self.queries.vectors[part]
        self.scored += int(count.sum())
        native.call(
            native.load().keys, vectors, vectors.shape[1], queries, len(count), self.room, count,
            self.rows[part], keys.shape[1], keys,
        )  # fmt: skip
        return keys

    def best(self) -> UInt64Array:
        """Score what is left and return the keys [n, k] of the best of each query, filled with NO_KEY."""
        self._tighten(self.k)
        return _best([self._keys(slice(None))], self.k)


def _best(parts: list[UInt64Array], k: int) -> UInt64Array:
    keys = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
    keys = np.sort(keys, axis=1)[:, :k]
    return np.pad(keys, ((0, 0), (0, k - keys.shape[1])), constant_values=NO_KEY)


def _decode(keys: UInt64Array) -> tuple[RowArray, ScoreArray]:
    """Undo the order-preserving packing of score and row."""
    rows = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
    bits = (keys >> np.uint64(32)).astype(np.uint32)
    bits = np.where(bits >> 31, bits, ~bits & np.uint32(0x7FFFFFFF))
    return rows, bits.view(np.float32)
