"""The GRU that applies its reset gate before U, against a plain loop over units, positions and steps; and how it
differs from torch's GRU."""

import math
from typing import Any

import torch
from torch import nn

from linker.scoring.pairs.sts.cross_encoder import ResetBeforeGru


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def oracle(gru: Any, inputs: torch.Tensor) -> list[list[list[float]]]:
    """Cho et al. (2014), equations 5 to 8, unit by unit."""
    size = gru.candidate.in_features
    w, b = gru.inputs.weight.tolist(), gru.inputs.bias.tolist()
    u, u_c = gru.gates.weight.tolist(), gru.candidate.weight.tolist()
    states: list[list[list[float]]] = []
    for sequence in inputs.tolist():
        h, of_steps = [0.0] * size, []
        for x in sequence:
            seen = [sum(a * v for a, v in zip(row, x, strict=True)) + b[n] for n, row in enumerate(w)]
            back = [sum(a * v for a, v in zip(row, h, strict=True)) for row in u]
            r = [_logistic(seen[j] + back[j]) for j in range(size)]
            z = [_logistic(seen[size + j] + back[size + j]) for j in range(size)]
            c = [
                math.tanh(seen[2 * size + j] + sum(u_c[j][i] * (r[i] * h[i]) for i in range(size)))
                for j in range(size)
            ]
            h = [z[j] * h[j] + (1 - z[j]) * c[j] for j in range(size)]
            of_steps.append(h)
        states.append(of_steps)
    return states


def test_the_states_are_those_of_the_equations() -> None:
    torch.manual_seed(0)
    gru = ResetBeforeGru(5, 3).double()
    inputs = torch.randn(4, 6, 5, dtype=torch.float64)
    states, last = gru(inputs)
    assert torch.allclose(states, torch.tensor(oracle(gru, inputs), dtype=torch.float64), atol=1e-12)
    assert torch.equal(last[0], states[:, -1])


def same_weights(dim: int, hidden: int) -> tuple[ResetBeforeGru, Any]:
    """Return both kinds of GRU with the same weights; torch's second bias, which the paper lacks, is zero."""
    ours = ResetBeforeGru(dim, hidden).double()
    torchs: Any = nn.GRU(dim, hidden, batch_first=True).double()
    with torch.no_grad():
        torchs.weight_ih_l0.copy_(ours.inputs.weight)
        torchs.bias_ih_l0.copy_(ours.inputs.bias)
        torchs.bias_hh_l0.zero_()
        torchs.weight_hh_l0.copy_(torch.cat([ours.gates.weight, ours.candidate.weight]))
    return ours, torchs


def test_torch_resets_after_u_which_differs_from_the_second_step_on_but_not_for_one_unit() -> None:
    torch.manual_seed(1)
    ours, torchs = same_weights(5, 3)
    inputs = torch.randn(2, 4, 5, dtype=torch.float64)
    (before, _), (after, _) = ours(inputs), torchs(inputs)
    assert torch.allclose(before[:, 0], after[:, 0], atol=1e-12)  # U acts on zeros
    assert not torch.allclose(before[:, 1], after[:, 1], atol=1e-4)
    torch.manual_seed(2)
    ours, torchs = same_weights(4, 1)
    inputs = torch.randn(3, 7, 4, dtype=torch.float64)
    assert torch.allclose(ours(inputs)[0], torchs(inputs)[0], atol=1e-12)


def test_gradients_reach_every_weight() -> None:
    torch.manual_seed(3)
    gru = ResetBeforeGru(3, 2)
    gru(torch.randn(2, 3, 3))[0].sum().backward()
    for name, weight in gru.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum().item() > 0, name
