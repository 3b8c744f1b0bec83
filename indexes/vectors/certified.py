"""Exact search in two steps: a coarse scan of 8-bit codes with a proven error bound, then exact scores for close rows.

A row x is stored as x̂ = s·c (s = max|xᵢ|/127, c a vector of one-byte integers) together with the length of the
rounding error, r = ‖x − x̂‖. A query q is encoded likewise, with e = ‖q − q̂‖. By the Cauchy–Schwarz inequality,

    |q·x − q̂·x̂| = |q̂·(x − x̂) + (q − q̂)·x| ≤ ‖q̂‖·r + e·N,        N = length of the longest row.

This holds for vectors of any length below 1e30 (a limit of float32); for unit vectors N = 1, and in 256 dimensions
the bound is about 0.014. q̂·x̂ is an integer times two scales, so it is computed exactly except for a few roundings to
float32; sixteen units of 2⁻²⁴·(‖q‖ + ‖q̂‖)·N cover these and the rounding of the score itself. A row's score
therefore lies between q̂·x̂ − bound and q̂·x̂ + bound. Once k rows are certain to reach a threshold, every row that
cannot reach it is ruled out, and all others are scored: the result is provably the same as if every row were scored.

Scores are summed in float64 and rounded to float32 once, however the row was selected.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from indexes import kernels
from indexes.dtypes import UInt64Array
from indexes.interface import Mask, Matrix, RowArray, ScoreArray

PANEL, WIDTH = 64, 6  # the same as in scan.c
BLOCK = 1 << 16  # rows encoded together; only the last block is ever re-encoded
MOST_DIM = 4096  # up to this dimension, the rounding error of a row is less than a quarter of its length
SLACK = 2.0**-20  # sixteen roundings to float32
ROOM = 1024  # a query's buffer holds max(ROOM, 16 k) candidates; when it is full, the threshold is raised
BUFFER_BYTES = 1 << 25  # size in bytes of each thread's candidate buffer
BYTES = 20  # bytes per candidate: row, value, upper, key
NO_KEY = np.iinfo(np.uint64).max
FEW_SCORED = 32  # scoring one row in this many costs as much as FAISS's scan
# Scoring a row maps 256 KiB of the file into memory, so scoring one row in TOUCHED maps nearly all of it. Files of more
# than LARGE bytes are unmapped then.
TOUCHED, LARGE = 512, 1 << 28
SERIAL = 1 << 27  # with fewer multiplications of bytes, a second thread costs more than it saves


class ExactScan(Protocol):
    """Exact top-k search over all rows. Searches may run in several threads at once."""

    @property
    def pays(self) -> bool:
        """Return whether the scan is worth its cost; it is not if most rows are too similar to be ruled out."""
        ...

    def search(
        self, vectors: Matrix, queries: Matrix, k: int, mask: Mask | None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows (int64) and scores (float32), both [n, k], best first, ties in row order.

        `vectors` is float32 [rows, dim] and only grows between calls; `queries` is float32 [n, dim]; `mask`
        (bool [rows]) allows at least k rows.
        """
        ...


class _ScanBlock(NamedTuple):
    codes: npt.NDArray[np.uint8]
    scales: ScoreArray
    errors: ScoreArray  # r of each row; −inf for padding
    longest: float


def _encode(vectors: Matrix) -> _ScanBlock:
    rows, dim = vectors.shape
    padded, room = -(-dim // 4) * 4, -(-rows // PANEL) * PANEL
    codes = np.empty(room * padded, dtype=np.uint8)
    scales, errors = np.zeros(room, dtype=np.float32), np.full(room, -np.inf, dtype=np.float32)
    encode = kernels.load("scan").encode
    longest = kernels.call(encode, np.ascontiguousarray(vectors), rows, dim, padded, codes, scales, errors)
    return _ScanBlock(codes, scales, errors, longest)


@dataclass(frozen=True)
class _Queries:
    """Encoded queries [n, dim]; the scan compares in units of each query's scale."""

    vectors: Matrix
    codes: npt.NDArray[np.int8]
    offset: npt.NDArray[np.int32]  # [n], compensates for the 128 added to the rows' codes
    scale: npt.NDArray[np.float64]  # [n]
    weight: ScoreArray  # [n], ‖q̂‖ / scale: the factor of a row's error in the bound
    # [n], (e·N + roundings) / scale: the part of the bound common to all rows
    shared: npt.NDArray[np.float64]

    @classmethod
    def code(cls, vectors: Matrix, longest: float) -> _Queries:
        """Encode `vectors` (float32 [n, dim]) as rows are, and arrange the codes as scan.c reads them."""
        count, dim = vectors.shape
        scale = np.abs(vectors).max(axis=1, initial=0).astype(np.float64) / 127
        scale[scale < 1e-30] = 1
        codes = np.zeros((count, -(-dim // 4) * 4), dtype=np.int8)
        codes[:, :dim] = np.rint(vectors / scale[:, None])
        rounded = codes[:, :dim] * scale[:, None]
        length, raw_length = _lengths(rounded), _lengths(vectors)
        shared = (_lengths(vectors - rounded) + SLACK * (raw_length + length)) * longest
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
    """ExactScan on the CPU. The codes add dim + 8 bytes per row to the vectors' 4·dim; masks hide removed rows."""

    def __init__(
        self, threads: Callable[[], int] = lambda: 1, release: Callable[[], None] = lambda: None
    ) -> None:
        """Create a scan without codes; `threads` returns how many threads the next search may use.

        `release` frees the memory of mapped vectors. It is called after each block is encoded, and, for large
        files, whenever enough rows have been scored to map the whole file into memory.
        """
        self._threads, self._release = threads, release
        self._blocks: list[_ScanBlock] = []
        self._coded = 0
        self._seen = self._scored = 0  # rows scanned and rows scored, over all queries so far
        self._touched = 0  # rows scored since the last release
        self._lock = threading.Lock()

    @property
    def pays(self) -> bool:
        """Return whether sufficiently few rows had to be scored."""
        return self._scored * FEW_SCORED <= self._seen + BLOCK * FEW_SCORED

    @staticmethod
    def available(dim: int) -> bool:
        """Return whether this machine can scan vectors of dimension `dim`."""
        return dim <= MOST_DIM and kernels.load("scan") is not None

    def _cover(self, vectors: Matrix) -> list[_ScanBlock]:
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
        """Return rows (int64) and scores (float32), both [n, k]; see ExactScan."""
        blocks = _allowed(self._cover(vectors), mask)
        room = min(max(ROOM, 16 * k), len(vectors)) + 2 * PANEL
        size = max(WIDTH, BUFFER_BYTES // (BYTES * room) // WIDTH * WIDTH)
        threads = self._threads() if len(queries) * vectors.size >= SERIAL else 1
        size = min(size, max(4 * WIDTH, -(-len(queries) // threads // WIDTH) * WIDTH))
        parts = [queries[start : start + size] for start in range(0, len(queries), size)]
        shares = max(1, threads // len(parts))
        longest = max(block.longest for block in blocks)

        def run(part: Matrix, share: int) -> UInt64Array:
            shared_blocks = list(enumerate(blocks))[share::shares]
            candidates = _scan(vectors, shared_blocks, _Queries.code(part, longest), k, room)
            keys = candidates.best()
            with self._lock:
                self._scored += candidates.scored
                self._touched += candidates.scored
                if self._touched * TOUCHED > len(vectors) and vectors.nbytes > LARGE:
                    self._release()
                    self._touched = 0
            return keys

        self._seen += len(queries) * len(vectors)
        work = [(part, share) for part in parts for share in range(shares)]
        if threads == 1:
            keys = [run(*w) for w in work]
        else:
            with ThreadPoolExecutor(min(threads, len(work))) as pool:
                keys = list(pool.map(run, *zip(*work, strict=True)))
        return _decode(np.concatenate([_best(keys[i : i + shares], k) for i in range(0, len(keys), shares)]))


def _allowed(blocks: list[_ScanBlock], mask: Mask | None) -> list[_ScanBlock]:
    """Return the blocks with an error of −inf for the rows that the mask forbids, so that they pass no threshold."""
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
    vectors: Matrix, blocks: list[tuple[int, _ScanBlock]], queries: _Queries, k: int, room: int
) -> _Candidates:
    """Return the rows of `blocks` that may be among the top k of each query."""
    library, pool = kernels.load("scan"), _Candidates(vectors, queries, k, room)
    padded = -(-vectors.shape[1] // 4) * 4
    for number, block in blocks:
        row = 0
        while row < len(block.scales):
            row = kernels.call(
                library.scan, block.codes, block.scales, block.errors, padded, number * BLOCK, row,
                len(block.scales), len(queries.vectors), queries.codes, queries.offset, queries.weight,
                pool.threshold, room, pool.count, pool.rows, pool.value, pool.upper,
            )  # fmt: skip
            if pool.count.max(initial=0) > room - 2 * PANEL:
                pool.make_room()
    return pool


class _Candidates:
    """The rows that may be among the top k of each query; a row leaves only when its bound or score rules it out."""

    def __init__(self, vectors: Matrix, queries: _Queries, k: int, room: int) -> None:
        count = len(queries.vectors)
        self.vectors, self.queries, self.k, self.room = vectors, queries, k, room
        # Thresholds start above −inf, so that forbidden rows never pass.
        self.threshold = np.full(count, np.finfo(np.float32).min, dtype=np.float32)
        self.scored = 0
        self.count = np.zeros(count, dtype=np.int64)
        self.rows = np.empty((count, room), dtype=np.int32)
        self.value = np.empty((count, room), dtype=np.float32)  # q̂·x̂
        self.upper = np.empty((count, room), dtype=np.float32)  # value + the row's part of the bound
        self._spread = np.nextafter((2 * queries.shared).astype(np.float32), np.float32(np.inf))
        self._scratch = np.empty(room, dtype=np.float32)

    def _tighten(self, least: int) -> None:
        kernels.call(
            kernels.load("scan").tighten, len(self.count), self.k, least, self.room, self._spread, self.threshold,
            self.count, self.rows, self.value, self.upper, self._scratch,
        )  # fmt: skip

    def make_room(self) -> None:
        """Shrink buffers that are over half full: apply the bound; if that is not enough, score and keep the top k."""
        half = max(self.k, self.room // 2)
        self._tighten(half)
        for q in np.flatnonzero(self.count > half):
            keys = self._keys(slice(q, q + 1))[0]
            survivors = np.argsort(keys)[: self.k]
            for part in (self.rows, self.value, self.upper):
                part[q, : len(survivors)] = part[q, survivors]
            self.count[q] = len(survivors)
            least = float(_decode(keys[survivors[-1:]])[1][0]) / self.queries.scale[q]
            self.threshold[q] = max(self.threshold[q], np.float32(least - self.queries.shared[q]))

    def _keys(self, part: slice) -> UInt64Array:
        count = self.count[part]
        keys = np.empty((len(count), int(count.max(initial=0))), dtype=np.uint64)
        vectors, queries = self.vectors, self.queries.vectors[part]
        self.scored += int(count.sum())
        kernels.call(
            kernels.load("scan").keys, vectors, vectors.shape[1], queries, len(count), self.room, count,
            self.rows[part], keys.shape[1], keys,
        )  # fmt: skip
        return keys

    def best(self) -> UInt64Array:
        """Score the remaining candidates; return the top k keys per query, uint64 [n, k], padded with NO_KEY."""
        self._tighten(self.k)
        return _best([self._keys(slice(None))], self.k)


def _best(parts: list[UInt64Array], k: int) -> UInt64Array:
    keys = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
    keys = np.sort(keys, axis=1)[:, :k]
    missing = k - keys.shape[1]
    return np.pad(keys, ((0, 0), (0, missing)), constant_values=NO_KEY) if missing else keys


def _decode(keys: UInt64Array) -> tuple[RowArray, ScoreArray]:
    """Return the rows (int64) and scores (float32) packed into `keys`, in the same shape."""
    rows = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
    bits = (keys >> np.uint64(32)).astype(np.uint32)
    bits = np.where(bits >> 31, bits, ~bits & np.uint32(0x7FFFFFFF))
    return rows, bits.view(np.float32)
