"""α-entmax against 100 bisections in float64, the entmax package, and finite differences."""

import math
from fractions import Fraction

import entmax as reference
import pytest
import torch
from torch import Tensor

from linker.encoders.entmax import _exp_remainder, backend, entmax

ALPHAS = (1.0001, 1.001, 1.01, 1.2, 1.5, 1.8, 1.9999, 2.0)


def bisected(scores: Tensor, alpha: Tensor | float) -> Tensor:
    """Find p along the last dimension by bisection, the slow and obvious way."""
    epsilon = torch.as_tensor(alpha, dtype=torch.float64) - 1
    x = (scores.double() - scores.double().amax(-1, keepdim=True)) * epsilon
    low, high = torch.full_like(x[..., :1], -1.0), torch.zeros_like(x[..., :1])
    for _ in range(100):
        middle = (low + high) / 2
        mass = (x - middle).clamp(min=0).log().div(epsilon).exp().sum(-1, keepdim=True)
        low, high = torch.where(mass >= 1, middle, low), torch.where(mass >= 1, high, middle)
    p = (x - low).clamp(min=0).log().div(epsilon).exp()
    return p / p.sum(-1, keepdim=True)


def hard_rows(n: int) -> Tensor:
    """Return rows [.., n]: flat, random, stepped, falling fast or slowly, with a heavy tail or two levels."""
    g = torch.Generator().manual_seed(n)
    k = torch.arange(n).float()
    random = [torch.randn(2, n, generator=g) * scale for scale in (0.0, 1e-4, 1e-2, 0.3, 1.0, 30.0)]
    falling = [-a * (k / n).pow(b)[None] for a in (0.3, 1.0, 100.0) for b in (0.1, 1.0, 8.0)]
    logarithms = [-a * (k + 1).log()[None] for a in (0.1, 0.5, 3.0)]
    heavy = [torch.rand(2, n, generator=g).log() * scale for scale in (0.01, 0.1, 1.0)]
    levels = [
        (torch.where(k < count, 0.0, -gap) + 1e-3 * torch.randn(n, generator=g))[None]
        for count in (1, n // 8 + 1, n // 2)
        for gap in (0.01, 1.0, 3.0)
    ]
    return torch.cat([*random, *falling, *logarithms, *heavy, *levels, -k.exp().clamp(max=1e30)[None]])


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [2, 7, 9, 512, 4096])
def test_equals_bisection(alpha: float, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = hard_rows(n)
    exact = bisected(scores, torch.tensor(alpha))
    p = entmax(scores, alpha)
    assert (p - exact).abs().max() <= 1e-6
    assert (p.sum(-1) - 1).abs().max() <= 1e-5
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)  # a fixed number of steps
    assert (entmax(scores, alpha) - exact).abs().max() <= 1e-6


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [2, 33, 512])
def test_equals_bisection_in_double_precision(alpha: float, n: int) -> None:
    scores = hard_rows(n).double()
    exact = torch.tensor(alpha, dtype=torch.float64)
    assert (entmax(scores, alpha) - bisected(scores, exact)).abs().max() <= 1e-12


@pytest.mark.parametrize("n", range(2, 9))
def test_few_positions_need_few_steps(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)  # a fixed number of steps
    scores = torch.randn(2000, n, generator=torch.Generator().manual_seed(n))
    scores *= torch.logspace(-2, 2, 2000)[:, None]
    for alpha in ALPHAS:
        assert (entmax(scores, alpha) - bisected(scores, torch.tensor(alpha))).abs().max() <= 1e-6


def test_compiled_in_one_graph_it_is_the_same() -> None:
    scores = hard_rows(40).requires_grad_()
    alpha = torch.tensor(1.3, requires_grad=True)
    whole = torch.compile(entmax, backend="aot_eager", fullgraph=True)
    weights = torch.randn(scores.shape, generator=torch.Generator().manual_seed(0))
    eager = torch.autograd.grad((entmax(scores, alpha) * weights).sum(), (scores, alpha))
    traced = torch.autograd.grad((whole(scores, alpha) * weights).sum(), (scores, alpha))
    for one, other in zip(eager, traced, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-5)


def test_worked_values() -> None:
    z = torch.tensor([1.0, 0.5, -2.0], dtype=torch.float64)
    assert entmax(z, 2.0).tolist() == pytest.approx([(1 + 0.5) / 2, (1 - 0.5) / 2, 0])  # sparsemax of two
    softmax = torch.softmax(z, 0)
    assert (entmax(z, 1.0) - softmax).abs().max() < 1e-4  # α is raised to just above 1, never NaN


def test_equals_the_entmax_package() -> None:
    z = torch.randn(50, 40, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 3
    assert torch.allclose(entmax(z, 2.0), reference.sparsemax(z), atol=1e-9)
    assert torch.allclose(entmax(z, 1.5), reference.entmax15(z), atol=1e-9)
    assert torch.allclose(entmax(z, 1.3), reference.entmax_bisect(z, 1.3), atol=1e-9)


def test_one_alpha_a_head_and_any_dimension() -> None:
    g = torch.Generator().manual_seed(2)
    z = torch.randn(7, 5, 3, generator=g, dtype=torch.float64)
    alpha = torch.tensor([1.1, 1.5, 2.0], dtype=torch.float64)
    together = entmax(z, alpha, dim=0)
    for head in range(3):
        alone = entmax(z[..., head].T, float(alpha[head]))
        assert torch.allclose(together[..., head].T, alone, atol=1e-12)


@pytest.mark.parametrize("alpha", [1.01, 1.3, 1.5, 1.9])
def test_gradcheck(alpha: float) -> None:
    z = torch.randn(4, 6, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64).requires_grad_()
    alphas = (torch.rand(3, generator=torch.Generator().manual_seed(4), dtype=torch.float64) * 0.05) + alpha
    mask = torch.rand(4, 6, 1, generator=torch.Generator().manual_seed(5)) < 0.7
    mask[0] = False
    alphas.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda z, a: entmax(z, a, dim=1, mask=mask), (z, alphas), eps=1e-7, atol=1e-5
    )


def test_gradient_for_alpha_is_a_hundred_times_closer_than_the_packages() -> None:
    z = torch.randn(64, 30, generator=torch.Generator().manual_seed(6))
    weights = torch.randn(64, 30, generator=torch.Generator().manual_seed(7))

    def slope(function, dtype: torch.dtype) -> Tensor:  # type: ignore[no-untyped-def]  # two call signatures
        alpha = torch.full((64, 1), 1.01, dtype=dtype, requires_grad=True)
        torch.autograd.backward((function(z.to(dtype), alpha) * weights.to(dtype)).sum())
        assert alpha.grad is not None
        return alpha.grad.double()

    h, at = 1e-5, torch.full((64, 1), float(torch.tensor(1.01)), dtype=torch.float64)
    exact = ((bisected(z, at + h) - bisected(z, at - h)) * weights).sum(-1, keepdim=True) / (2 * h)
    ours = (slope(entmax, torch.float32) - exact).abs().max()
    theirs = (slope(reference.entmax_bisect, torch.float32) - exact).abs().max()
    assert ours < 1e-5
    assert ours * 100 < theirs


def test_masked_equals_sliced() -> None:
    g = torch.Generator().manual_seed(8)
    z = torch.randn(40, 12, generator=g).requires_grad_()
    kept = torch.rand(12, generator=g) < 0.5
    p = entmax(z, 1.4, mask=kept)
    assert (p[:, ~kept] == 0).all()
    assert torch.allclose(p[:, kept], entmax(z[:, kept], 1.4), atol=1e-6)
    torch.autograd.backward(p.square().sum())
    assert z.grad is not None
    assert (z.grad[:, ~kept] == 0).all()
    assert torch.isfinite(z.grad).all()


def test_half_precision_is_computed_in_float32() -> None:
    z = torch.randn(10, 20, generator=torch.Generator().manual_seed(9)).bfloat16()
    p = entmax(z, 1.01)
    assert p.dtype == torch.bfloat16
    assert torch.equal(p, entmax(z.float(), 1.01).bfloat16())
    assert torch.isfinite(entmax(torch.tensor([60000.0, -60000.0], dtype=torch.float16), 1.5)).all()


@pytest.mark.parametrize("t", [0.0, 1e-12, 1e-6, 0.01, 0.1, 0.29, 0.31, 1.0, 5.0])
def test_the_remainder_of_the_exponential_is_exact_near_zero(t: float) -> None:
    exact = sum(Fraction(t) ** n / math.factorial(n + 2) for n in range(40))  # (eᵗ − 1 − t)/t²
    assert _exp_remainder(torch.tensor([t], dtype=torch.float64)).item() == pytest.approx(
        float(exact), rel=1e-12
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_package_as_backend_gives_the_same_values_and_gradients(dtype: torch.dtype) -> None:
    g = torch.Generator().manual_seed(3)
    scores = torch.randn(2, 4, 9, generator=g, dtype=dtype)
    mask = torch.rand(2, 1, 9, generator=g) > 0.3
    mask[1] = False  # a text without tokens
    weights = torch.randn(2, 4, 9, generator=g, dtype=dtype)
    found = []
    for name in ("own", "package"):
        x = scores.clone().requires_grad_()
        alpha = torch.tensor([1.1, 1.4, 1.7, 1.95], dtype=dtype)[:, None].requires_grad_()
        p = backend(name)(x, alpha, -1, mask)
        (p * weights).sum().backward()  # type: ignore[no-untyped-call]  # torch's own
        found.append((p.detach(), x.grad, alpha.grad))
    for ours, theirs in zip(*found, strict=True):
        assert ours is not None
        assert theirs is not None
        assert (ours - theirs).abs().max() < (1e-6 if dtype == torch.float64 else 1e-4)
    assert not found[1][0][1].any()
