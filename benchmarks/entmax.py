"""α-entmax and entmax_bisect: CPU time of forward and backward on one thread, eager and compiled; errors; ∂/∂α."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import entmax as reference
import torch
from torch import Tensor

from benchmarks.support.common import cpu_time
from benchmarks.support.harness import Arguments, Results, benchmark
from linker.encoders.entmax import entmax

# The star's scores of 16,384 tokens, 4 heads. With heads last, compiled loops are 4 long: the star avoids it.
SHAPES = {
    "ring [K, B, h, L], K = 6": ((6, 64, 4, 256), 0, (4, 1)),
    "relay [B, h, L], L = 256": ((64, 4, 256), 2, (4, 1)),
    "relay [B, h, L], L = 1024": ((16, 4, 1024), 2, (4, 1)),
    "ring [K, B, L, h], K = 6": ((6, 64, 256, 4), 0, (4,)),
    "relay [B, L, h], L = 1024": ((16, 1024, 4), 1, (4,)),
}
ALPHAS = (1.05, 1.5, 1.9)
SWEEP = (1.0001, 1.001, 1.01, 1.1, 1.3, 1.5, 1.7, 1.9, 1.99, 2.0)


def compare(shape: tuple[int, ...], dim: int, heads: tuple[int, ...]) -> dict[str, Any]:
    """Time ours, ours compiled and theirs; one α a head for ours, spread to every row for theirs, which asks for it."""
    g = torch.Generator().manual_seed(0)
    z, weights = torch.randn(shape, generator=g).requires_grad_(), torch.randn(shape, generator=g)
    torch.compiler.reset()
    compiled = torch.compile(entmax, dynamic=False)
    found: dict[str, Any] = {}
    for start in ALPHAS:
        alpha = torch.full(heads, start, requires_grad=True)
        rows = alpha.detach().expand([1 if i == dim else n for i, n in enumerate(shape)]).clone()

        def run(function: Any, alpha: Tensor) -> float:
            def call() -> None:
                torch.autograd.backward(function(z, alpha, dim), weights)

            call()
            return cpu_time(call, 5) * 1e3

        theirs = run(reference.entmax_bisect, rows.requires_grad_())
        eager, fast = run(entmax, alpha), run(compiled, alpha)
        found[f"alpha {start}"] = {
            "entmax_bisect_ms": theirs,
            "eager_ms": eager,
            "compiled_ms": fast,
            "eager_times_faster": theirs / eager,
            "compiled_times_faster": theirs / fast,
            "compiled_differs_by": float(
                (compiled(z, alpha, dim) - entmax(z, alpha, dim)).abs().max().detach()
            ),
        }
    return found


def bisected(scores: Tensor, alpha: Tensor) -> Tensor:
    """Return p along the last dimension by 100 bisections, in float64."""
    epsilon = alpha.double() - 1
    x = (scores.double() - scores.double().amax(-1, keepdim=True)) * epsilon
    low, high = torch.full_like(x[..., :1], -1.0), torch.zeros_like(x[..., :1])
    for _ in range(100):
        middle = (low + high) / 2
        mass = (x - middle).clamp(min=0).log().div(epsilon).exp().sum(-1, keepdim=True)
        low, high = torch.where(mass >= 1, middle, low), torch.where(mass >= 1, high, middle)
    p = (x - low).clamp(min=0).log().div(epsilon).exp()
    return p / p.sum(-1, keepdim=True)


def hard_rows(n: int) -> Tensor:
    """Return rows [.., n]: flat, random, falling slowly or fast, in two levels."""
    g = torch.Generator().manual_seed(n)
    k = torch.arange(n).float()
    random = [torch.randn(2, n, generator=g) * scale for scale in (0.0, 1e-3, 0.1, 1.0, 10.0)]
    falling = [-a * (k / n).pow(b)[None] for a in (0.3, 1.0, 100.0) for b in (0.1, 1.0, 8.0)]
    levels = [torch.where(k < c, 0.0, -gap)[None] for c in (1, n // 2) for gap in (0.01, 1.0, 3.0)]
    return torch.cat([*random, *falling, *levels, -0.5 * (k + 1).log()[None]])


def errors() -> dict[str, Any]:
    """Return the largest error in p over n and α, by n."""
    found = {}
    for n in (2, 6, 64, 512, 4096):
        rows = hard_rows(n)
        each = {a: bisected(rows, torch.tensor(a)) for a in SWEEP}
        found[f"n = {n}"] = {
            "ours": max(float((entmax(rows, a) - p).abs().max()) for a, p in each.items()),
            "entmax_bisect": max(
                float((reference.entmax_bisect(rows, a) - p).abs().max()) for a, p in each.items()
            ),
        }
    return found


def slope(function: Callable[..., Tensor], z: Tensor, weights: Tensor, alpha: float) -> Tensor:
    """Return d(Σ w p)/dα of each row in float32."""
    rows = torch.full((len(z), 1), alpha, requires_grad=True)
    torch.autograd.backward((function(z, rows) * weights).sum())
    assert rows.grad is not None
    return rows.grad.double()


def alpha_gradients() -> dict[str, Any]:
    """Return the largest error of ∂/∂α against central differences of the float64 bisection."""
    g = torch.Generator().manual_seed(6)
    z, weights = torch.randn(64, 30, generator=g), torch.randn(64, 30, generator=g)
    found = {}
    for alpha in (1.0005, 1.01, 1.1, 1.5, 1.9):
        at, h = torch.full((64, 1), float(torch.tensor(alpha)), dtype=torch.float64), 1e-5
        exact = ((bisected(z, at + h) - bisected(z, at - h)) * weights).sum(-1, keepdim=True) / (2 * h)
        ours = float((slope(entmax, z, weights, alpha) - exact).abs().max())
        theirs = float((slope(reference.entmax_bisect, z, weights, alpha) - exact).abs().max())
        found[f"alpha {alpha}"] = {
            "ours": ours,
            "entmax_bisect": theirs,
            "times_closer": theirs / max(ours, 1e-12),
        }
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    return round(value, 3 - math.floor(math.log10(abs(value)))) if value else value


@benchmark(seed=0)
def measured(_: Arguments) -> Results:
    torch.set_num_threads(1)
    results: Results = {"errors": errors(), "alpha gradients": alpha_gradients(), "speed": {}}
    for name, shape in SHAPES.items():
        results["speed"][name] = found = compare(*shape)
        print(name, {a: round(v["compiled_times_faster"], 1) for a, v in found.items()}, flush=True)
    return {key: _rounded(value) for key, value in results.items()}
