"""α-entmax, from softmax (α → 1) to sparsemax (α = 2): exact, with gradients for the scores and for α.

Peters, Niculae & Martins (2019) define it; Correia, Niculae & Martins (2019) give ∂/∂α. With ε = α − 1, x = z − max z:

    p_i = [1 + ε(x_i − λ)]₊^(1/ε),   λ such that Σ p = 1.

λ is the root of ‖1 + ε(x − λ)‖_{1/ε} = 1, a convex decreasing function, so Newton's method never overshoots from the
left.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from indexes.errors import importing

MIN_EPSILON = 1e-5  # α is at least 1 + this, where entmax and softmax agree to about 1e-5 · log² p
MAX_STEPS = 50
# If compiled: (rounds for the starting point, Newton steps), for rows of up to 8 positions and for longer rows.
_FEW, _MANY = (1, 4), (6, 6)

Entmax = Callable[[Tensor, Tensor | float, int, Tensor | None], Tensor]


def entmax(scores: Tensor, alpha: Tensor | float, dim: int = -1, mask: Tensor | None = None) -> Tensor:
    """Return probabilities of the shape and dtype of `scores`, with exact zeros; differentiable in scores and alpha.

    `alpha` in (1, 2] is a number, or broadcasts to `scores` with size 1 along `dim` (one α per head). `mask`
    broadcasts to `scores` and is True where a score counts: other positions get 0, and a row without a True is all
    zeros. float16 and bfloat16 are computed in float32.
    """
    exact = _exact(scores)
    if mask is not None:
        exact = exact.masked_fill(~mask, -torch.inf)
    rows = list(exact.shape)
    rows[dim] = 1
    alpha = torch.as_tensor(alpha, dtype=exact.dtype, device=exact.device).expand(rows)
    result: Tensor = _Entmax.apply(exact, alpha, dim)
    return result.to(scores.dtype)


def _exact(scores: Tensor) -> Tensor:
    return scores if scores.dtype == torch.float64 else scores.float()


def backend(name: str) -> Entmax:
    """Return entmax, ours ("own") or the package's ("package"). Raises MissingExtraError without the package."""
    if name == "own":
        return entmax
    with importing("entmax = 'package'", "entmax"):
        from entmax import entmax_bisect

    def by_package(
        scores: Tensor, alpha: Tensor | float, dim: int = -1, mask: Tensor | None = None
    ) -> Tensor:
        exact = _exact(scores)
        if mask is None:
            return torch.as_tensor(entmax_bisect(exact, alpha, dim)).to(scores.dtype)
        # The package returns NaN for a row of −inf, so a row without any position that counts keeps its scores.
        found = entmax_bisect(exact.masked_fill(~mask & mask.any(dim, keepdim=True), -torch.inf), alpha, dim)
        return torch.as_tensor(found * mask).to(scores.dtype)

    return by_package


class _Entmax(torch.autograd.Function):
    """Saves only p and α for the backward pass, since they determine everything else."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: Tensor, dim: int) -> Tensor:
        p = _solve(scores, (alpha - 1).clamp(min=MIN_EPSILON), dim)
        ctx.save_for_backward(p, alpha)
        ctx.dim = dim
        return p

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, None]:
        p, alpha = ctx.saved_tensors
        dim, epsilon = ctx.dim, (alpha - 1).clamp(min=MIN_EPSILON)
        support = p > 0
        log_p = torch.where(support, p, 1.0).log_()
        t = -epsilon * log_p
        skewed = torch.where(support, (log_p + t).exp_(), 0.0)  # p^(2 − α)
        total = skewed.sum(dim, keepdim=True).clamp(min=torch.finfo(p.dtype).tiny)
        centred = grads[0] - (skewed * grads[0]).sum(dim, keepdim=True) / total
        for_alpha = None
        if ctx.needs_input_grad[1]:
            # ∂p/∂α at fixed λ is −p log²p · (eᵗ − 1 − t)/t²; `centred` accounts for the change in λ.
            for_alpha = -(p * log_p.square() * _exp_remainder(t) * centred).sum(dim, keepdim=True)
        return skewed * centred, for_alpha, None


def _solve(scores: Tensor, epsilon: Tensor, dim: int) -> Tensor:
    """Return p by Newton's method on the 1/ε-norm from below the root; if compiled, in a fixed number of steps."""
    compiled = torch.compiler.is_compiling()
    top = scores.amax(dim, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)  # a row of −inf stays −inf
    x = scores - top
    rounds, steps = _FEW if x.shape[dim] <= 8 else _MANY
    shift = _start(x, epsilon, dim, rounds if compiled else 0)
    tiny, tolerance = torch.finfo(x.dtype).tiny, 8 * torch.finfo(x.dtype).eps
    inverse = epsilon.reciprocal()
    for _ in range(steps if compiled else MAX_STEPS):
        y = ((x - shift) * epsilon).clamp_(min=-1)
        p = y.log1p().mul_(inverse).exp_()
        fall = p / y.add_(1).clamp_(min=tiny)  # −∂p/∂λ = p^(2 − α)
        mass, total = p.sum(dim, keepdim=True), fall.sum(dim, keepdim=True).clamp_(min=tiny)
        step = -torch.expm1(-epsilon * mass.clamp(min=tiny).log()) * inverse * mass / total
        moved = shift + step.clamp_(min=0)
        if not compiled and bool(((mass <= 1 + tolerance) | (moved == shift)).all()):
            break  # converged, or the step is below the rounding error
        shift = moved
    # λ has rounding errors, which add up over a row: subtract the excess mass as a change in λ would.
    return (p - fall * ((mass - 1) / total)).clamp_(min=0)


def _start(x: Tensor, epsilon: Tensor, dim: int, rounds: int) -> Tensor:
    """Return a λ at or below the root, as mean(x) + (1 − k^−ε)/ε is for any k positions, by Jensen's inequality.

    It is the greatest of these values for several sets of positions: the maximum alone, all of them and, `rounds`
    times, those with a positive probability under the last λ.
    """
    counted = torch.isfinite(x)
    shift = torch.zeros_like(x.narrow(dim, 0, 1))
    for left in range(rounds, -1, -1):
        count = torch.where(counted, 1.0, 0.0).sum(dim, keepdim=True).clamp_(min=1)
        mean = torch.where(counted, x, 0.0).sum(dim, keepdim=True) / count
        shift = torch.maximum(shift, mean - torch.expm1(-epsilon * count.log()) / epsilon)
        if left:
            counted = (x - shift) * epsilon > -1
    return shift


def _exp_remainder(t: Tensor) -> Tensor:
    """Return (eᵗ − 1 − t)/t² without cancellation; t ≥ 0."""
    near = t < 0.3
    small = torch.where(near, t, 0.0)
    series = torch.full_like(t, 1 / 39916800)
    for factorial in (3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2):
        series = series.mul_(small).add_(1 / factorial)
    large = torch.where(near, 1.0, t)
    return torch.where(near, series, (large.expm1() - large) / large.square())
