"""The certified scan in torch, for a GPU: float16 products exclude rows by a proven bound; others are scored exactly.

It implements indexes.vectors.certified.ExactScan. `indexes` never imports torch, so the engine passes the scan to it.
The bound is that of certified.py with x̂ = x rounded to float16 (an index's rows are unit vectors, so within range),
plus the error of the product itself, which is summed in float32 and rounded to float16 once.
"""

from __future__ import annotations

import contextlib
import importlib.util
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from indexes.arrays import padding
from indexes.interface import Mask, Matrix, RowArray, ScoreArray

if TYPE_CHECKING:
    import torch

DRIVERS = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"))
BLOCK, QUERIES = 1 << 16, 1024  # rows and queries multiplied at once
HELD, SCORED = 1 << 23, 1 << 17  # maximum number of candidates kept unscored, and scored at once
HALF, SINGLE = 2.0**-11, 2.0**-22  # relative rounding errors: per value, per step of a sum on tensor cores
REDUCTION = threading.Lock()
# Settings of torch, either of which would break the bound if it were on.
SUMMING = ("allow_fp16_reduced_precision_reduction", "allow_fp16_accumulation")


def gpu_scan() -> Callable[[], TorchScan | None] | None:
    """Return a factory of scans on the first GPU; None without an NVIDIA driver or torch (which is not imported)."""
    possible = any(driver.exists() for driver in DRIVERS) and importlib.util.find_spec("torch")
    return _on_gpu if possible else None


def _on_gpu() -> TorchScan | None:
    import torch

    return TorchScan("cuda") if torch.cuda.is_available() else None


@contextlib.contextmanager
def _sums_in_float32() -> Iterator[None]:
    """Forbid torch from summing float16 products in float16: two process-wide settings, restored afterwards."""
    import torch

    matmul = torch.backends.cuda.matmul
    with REDUCTION:
        before = {name: getattr(matmul, name) for name in SUMMING}
        try:
            for name in SUMMING:
                setattr(matmul, name, False)
            yield
        finally:
            for name, value in before.items():
                setattr(matmul, name, value)


class TorchScan:
    """ExactScan on a torch device, which holds the vectors and their float16 copies: 6 bytes per component."""

    def __init__(self, device: str) -> None:
        import torch

        self.device = torch.device(device)
        # The vectors of each block, their float16 copies, and rounding errors.
        self._blocks: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        self._covered = 0
        self._longest = 0.0
        self._lock = threading.Lock()

    @property
    def pays(self) -> bool:
        """Always true: on a GPU, the scan is worth it however many rows have to be scored exactly."""
        return True

    def _cover(self, vectors: Matrix) -> None:
        """Copy the rows of `vectors` [n, dim] added since the last call; only the last block is ever copied again."""
        import torch

        if self._covered == len(vectors):
            return
        whole = self._covered // BLOCK
        del self._blocks[whole:]
        for start in range(whole * BLOCK, len(vectors), BLOCK):
            exact = torch.from_numpy(np.array(vectors[start : start + BLOCK])).to(self.device)
            rounded = exact.half()
            errors = (exact - rounded.float()).double().norm(dim=1) * (1 + 1e-6)
            self._longest = max(self._longest, float(exact.double().norm(dim=1).max()))
            self._blocks.append((exact, rounded, errors.float()))
        self._covered = len(vectors)

    def search(
        self, vectors: Matrix, queries: Matrix, k: int, mask: Mask | None
    ) -> tuple[RowArray, ScoreArray]:
        """Return rows int64 and scores float32, [queries, k] each, best first and ties in row order; see ExactScan.

        Raises MemoryError if the device's memory is too small.
        """
        import torch

        rows, scores = padding(len(queries), k)
        with self._lock, torch.inference_mode(), _sums_in_float32():
            try:
                self._cover(vectors)
                allowed = None if mask is None else torch.from_numpy(np.array(mask)).to(self.device)
                for start in range(0, len(queries), QUERIES):
                    part = slice(start, start + QUERIES)
                    batch = torch.from_numpy(np.ascontiguousarray(queries[part])).to(self.device)
                    rows[part], scores[part] = self._search(batch, k, allowed)
            except torch.OutOfMemoryError as e:
                raise MemoryError(str(e)) from None
        return rows, scores

    def _search(
        self, queries: torch.Tensor, k: int, allowed: torch.Tensor | None
    ) -> tuple[RowArray, ScoreArray]:
        pool = _Pool(queries, k, self._score)
        rounded = queries.half()
        length = rounded.double().norm(dim=1)
        lost = (queries - rounded.float()).double().norm(dim=1)
        steps = HALF * 1.01 + (queries.shape[1] + 16) * SINGLE
        shared = ((lost + length * steps) * self._longest * (1 + 1e-6)).float()[:, None] + 1e-7
        for number, (_, coarse, errors) in enumerate(self._blocks):
            # On a CPU (used only in tests), the product is summed in float32 explicitly.
            on_gpu = self.device.type != "cpu"
            value = rounded @ coarse.T if on_gpu else (rounded.float() @ coarse.float().T).half()
            value = value.float()
            bound = length.float()[:, None] * errors * (1 + 1e-6) + shared
            if allowed is not None:
                value[:, ~allowed[number * BLOCK :][: len(errors)]] = float("-inf")
            pool.take(value - bound, value + bound, number * BLOCK)
        return pool.best()

    def _score(self, queries: torch.Tensor, owners: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return the dot product of each pair `owners[i]` (of `queries` [m, dim]) and `rows[i]`, float32 [n].

        Sums are in float64. The vectors are gathered in parts: those of all pairs may exceed a GPU's memory.
        """
        import torch

        out = torch.empty(len(rows), dtype=torch.float32, device=self.device)
        for number, (exact, _, _) in enumerate(self._blocks):
            pairs = torch.nonzero(rows // BLOCK == number)[:, 0]
            for start in range(0, len(pairs), SCORED):
                part = pairs[start : start + SCORED]
                out[part] = (
                    (queries[owners[part]].double() * exact[rows[part] - number * BLOCK].double())
                    .sum(1)
                    .float()
                )
        return out


class _Pool:
    """Pairs of query and row that may be in the top k; removed only if a bound or score proves that they are not."""

    def __init__(self, queries: torch.Tensor, k: int, score: Callable[..., Any]) -> None:
        self._queries, self._k, self._score = queries, k, score
        self._pairs: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []  # query, row, upper bound
        self._lower = queries.new_full((len(queries), k), float("-inf"))  # the best lower bounds so far
        self._floor = self._lower[:, -1].clone()  # the k-th exact score, once k rows have been scored
        self._held_pairs = 0

    @property
    def _threshold(self) -> torch.Tensor:
        """For each query, a score [queries] that at least k rows are certain to reach."""
        import torch

        return torch.maximum(self._lower[:, -1], self._floor)

    def take(self, lower: torch.Tensor, upper: torch.Tensor, base: int) -> None:
        """Add the pairs of the block at row `base` that may be in the top k, by their bounds [queries, rows]."""
        import torch

        gaining = torch.nonzero(lower.amax(dim=1) > self._lower[:, -1])[:, 0]
        if len(gaining):
            top = lower[gaining].topk(min(self._k, lower.shape[1]), dim=1).values
            self._lower[gaining] = torch.cat([self._lower[gaining], top], dim=1).topk(self._k, dim=1).values
        query, row = torch.nonzero(
            (upper >= self._threshold[:, None]) & (upper > float("-inf")), as_tuple=True
        )
        self._pairs.append((query, row + base, upper[query, row]))
        self._held_pairs += len(query)
        if self._held_pairs > HELD:
            self._settle()

    def _settle(self) -> RowArray:
        """Score all remaining pairs, keep each query's top k, and return the ranks, from 0, of the pairs kept."""
        import torch

        query, row, upper = (torch.cat(part) for part in zip(*self._pairs, strict=True))
        alive = upper >= self._threshold[query]
        query, row = query[alive], row[alive]
        scores = self._score(self._queries, query, row) + 0.0
        order = np.lexsort((row.cpu().numpy(), -scores.cpu().numpy(), query.cpu().numpy()))
        owner = query.cpu().numpy()[order]
        rank = np.arange(len(owner)) - np.searchsorted(owner, owner)
        first = rank < self._k
        top = torch.from_numpy(order[first]).to(query.device)
        query, row, scores = query[top], row[top], scores[top]
        self._pairs, self._held_pairs = [(query, row, scores)], len(query)
        last = torch.from_numpy(rank[first] == self._k - 1).to(query.device)
        self._floor[query[last]] = scores[last]
        return np.asarray(rank[first])

    def best(self) -> tuple[RowArray, ScoreArray]:
        """Score the remaining pairs and return rows int64 and scores float32, [queries, k] each."""
        rank = self._settle()
        query, row, scores = (part.cpu().numpy() for part in self._pairs[0])
        rows, values = padding(len(self._queries), self._k)
        rows[query, rank], values[query, rank] = row, scores
        return rows, values
