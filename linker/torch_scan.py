"""The certified scan by torch, for a GPU: float16 products with a proven bound, then scores of what is left.

It implements indexes.vectors.certified.ExactScan. `indexes` never imports torch, so the engine hands the scan to it.
The bound is that of certified.py with x̂ = x rounded to float16 (rows of an index are unit vectors, which fit), plus
what the product itself loses: it is added up in float32 and rounded to float16 once.
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
BLOCK, QUERIES = 1 << 16, 1024  # rows and queries multiplied at a time
HELD, SCORED = 1 << 23, 1 << 17  # candidates held before they are scored; scored at a time
HALF, SINGLE = 2.0**-11, 2.0**-22  # relative roundings: of one value, of one step of a sum on tensor cores
REDUCTION = threading.Lock()


def gpu_scan() -> Callable[[], TorchScan | None] | None:
    """Return how to make a scan on the first GPU, or None without a driver or torch, which is not imported here."""
    there = any(driver.exists() for driver in DRIVERS) and importlib.util.find_spec("torch")
    return _on_gpu if there else None


def _on_gpu() -> TorchScan | None:
    import torch

    return TorchScan("cuda") if torch.cuda.is_available() else None


@contextlib.contextmanager
def _sums_in_float32() -> Iterator[None]:
    """Forbid torch to add up products of float16 in float16: a setting of the process, put back afterwards."""
    import torch

    matmul = torch.backends.cuda.matmul
    with REDUCTION:
        before = matmul.allow_fp16_reduced_precision_reduction
        matmul.allow_fp16_reduced_precision_reduction = False
        try:
            yield
        finally:
            matmul.allow_fp16_reduced_precision_reduction = before


class TorchScan:
    """ExactScan on a torch device. There it keeps the vectors and their float16 copy: 6 bytes a dimension."""

    def __init__(self, device: str) -> None:
        import torch

        self.device = torch.device(device)
        self._blocks: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []  # vectors, rounded, errors
        self._covered = 0
        self._longest = 0.0
        self._lock = threading.Lock()

    @property
    def pays(self) -> bool:
        """It always does: a GPU scores what it must."""
        return True

    def _cover(self, vectors: Matrix) -> None:
        """Take over the rows that came since the last call; only the last block is ever taken again."""
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
        """Return rows and scores [n, k], best first, equal ones in row order; see ExactScan."""
        import torch

        rows, scores = padding(len(queries), k)
        with self._lock, torch.inference_mode(), _sums_in_float32():
            self._cover(vectors)
            allowed = None if mask is None else torch.from_numpy(np.array(mask)).to(self.device)
            for start in range(0, len(queries), QUERIES):
                part = slice(start, start + QUERIES)
                asked = torch.from_numpy(np.ascontiguousarray(queries[part])).to(self.device)
                rows[part], scores[part] = self._search(asked, k, allowed)
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
            # On a processor, where this is for tests, the product is added up in float32 by hand.
            on_gpu = self.device.type != "cpu"
            value = rounded @ coarse.T if on_gpu else (rounded.float() @ coarse.float().T).half()
            value = value.float()
            bound = length.float()[:, None] * errors * (1 + 1e-6) + shared
            if allowed is not None:
                value[:, ~allowed[number * BLOCK :][: len(errors)]] = float("-inf")
            pool.take(value - bound, value + bound, number * BLOCK)
        return pool.best()

    def _score(self, queries: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return the products of pairs, summed in float64 and rounded to float32."""
        import torch

        out = torch.empty(len(rows), dtype=torch.float32, device=self.device)
        for number, (exact, _, _) in enumerate(self._blocks):
            among = torch.nonzero(rows // BLOCK == number)[:, 0]
            for start in range(0, len(among), SCORED):
                mine = among[start : start + SCORED]
                out[mine] = (
                    (queries[mine].double() * exact[rows[mine] - number * BLOCK].double()).sum(1).float()
                )
        return out


class _Pool:
    """Pairs of query and row that may be among the k best. One leaves by proof only: bound or score."""

    def __init__(self, queries: torch.Tensor, k: int, score: Callable[..., Any]) -> None:
        self._queries, self._k, self._score = queries, k, score
        self._pairs: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []  # query, row, upper
        self._lower = queries.new_full((len(queries), k), float("-inf"))  # the best sure scores so far
        self._floor = self._lower[:, -1].clone()  # the k-th score, where k rows are scored
        self._held = 0

    @property
    def _threshold(self) -> torch.Tensor:
        """What k rows of each query reach for certain."""
        import torch

        return torch.maximum(self._lower[:, -1], self._floor)

    def take(self, lower: torch.Tensor, upper: torch.Tensor, base: int) -> None:
        """Take in a block's bounds [queries, rows]; only queries that may gain raise their threshold."""
        import torch

        late = torch.nonzero(lower.amax(dim=1) > self._lower[:, -1])[:, 0]
        if len(late):
            top = lower[late].topk(min(self._k, lower.shape[1]), dim=1).values
            self._lower[late] = torch.cat([self._lower[late], top], dim=1).topk(self._k, dim=1).values
        query, row = torch.nonzero(
            (upper >= self._threshold[:, None]) & (upper > float("-inf")), as_tuple=True
        )
        self._pairs.append((query, row + base, upper[query, row]))
        self._held += len(query)
        if self._held > HELD:
            self._settle()

    def _settle(self) -> RowArray:
        """Score all pairs that still count, keep each query's k best and return which rank each of these has."""
        import torch

        query, row, upper = (torch.cat(part) for part in zip(*self._pairs, strict=True))
        alive = upper >= self._threshold[query]
        query, row = query[alive], row[alive]
        scores = self._score(self._queries[query], row) + 0.0
        order = np.lexsort((row.cpu().numpy(), -scores.cpu().numpy(), query.cpu().numpy()))
        owner = query.cpu().numpy()[order]
        place = np.arange(len(owner)) - np.searchsorted(owner, owner)
        first = place < self._k
        kept = torch.from_numpy(order[first]).to(query.device)
        query, row, scores = query[kept], row[kept], scores[kept]
        self._pairs, self._held = [(query, row, scores)], len(query)
        last = torch.from_numpy(place[first] == self._k - 1).to(query.device)
        self._floor[query[last]] = scores[last]
        return np.asarray(place[first])

    def best(self) -> tuple[RowArray, ScoreArray]:
        """Score what is left and return rows and scores [queries, k]."""
        place = self._settle()
        query, row, scores = (part.cpu().numpy() for part in self._pairs[0])
        rows, values = padding(len(self._queries), self._k)
        rows[query, place], values[query, place] = row, scores
        return rows, values
