"""α-entmax, forward and backward, against entmax_bisect in the same layout: CPU time on one thread, and errors."""

from __future__ import annotations

from typing import Any

import entmax as reference
import torch

from benchmarks.common import cpu_time, record
from linker.encoders.entmax import entmax

SHAPES = {
    "ring, window last": ((20480, 6), -1),
    "ring, window first": ((6, 20480), 0),
    "relay 512": ((160, 512), -1),
}


def compare(shape: tuple[int, ...], dim: int, start: float) -> dict[str, float]:
    g = torch.Generator().manual_seed(0)
    z, weights = torch.randn(shape, generator=g).requires_grad_(), torch.randn(shape, generator=g)
    alpha = torch.full((1, 1), start, requires_grad=True)

    def run(function: Any) -> float:
        return cpu_time(lambda: torch.autograd.backward(function(z, alpha, dim), weights))

    ours, theirs = run(entmax), run(reference.entmax_bisect)
    return {"ours_ms": ours * 1e3, "entmax_bisect_ms": theirs * 1e3, "times_faster": theirs / ours}


def main() -> None:
    torch.set_num_threads(1)
    results = {
        f"{name}, alpha {start}": compare(shape, dim, start)
        for name, (shape, dim) in SHAPES.items()
        for start in (1.05, 1.5, 1.9)
    }
    for name, figures in results.items():
        print(f"{name:32}", {k: round(v, 2) for k, v in figures.items()})
    print(record("entmax", results, seed=0))


if __name__ == "__main__":
    main()
