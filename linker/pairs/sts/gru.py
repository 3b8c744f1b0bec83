"""The GRU as Cho et al. (EMNLP 2014) and the Cross-BERT-GRU define it: the reset gate acts before the matrix U.

PyTorch's `nn.GRU` resets after it, r ⊙ (U h) in place of U (r ⊙ h), which cuDNN computes faster. Neither is a special
case of the other.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class ResetBeforeGru(nn.Module):
    """One layer, one direction, beginning at the zero state.

    With σ the logistic function, per step t (Cho et al. 2014, equations 5 to 8):
    r = σ(W_r x_t + U_r h_{t−1} + b_r), z = σ(W_z x_t + U_z h_{t−1} + b_z),
    c = tanh(W x_t + U (r ⊙ h_{t−1}) + b), h_t = z ⊙ h_{t−1} + (1 − z) ⊙ c.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        """`dim` is the size of an input, `hidden` that of the state; weights are uniform in ±1/√hidden, as in torch."""
        super().__init__()
        self.inputs = nn.Linear(dim, 3 * hidden)  # W_r, W_z, W and the biases
        self.gates = nn.Linear(hidden, 2 * hidden, bias=False)  # U_r, U_z
        self.candidate = nn.Linear(hidden, hidden, bias=False)  # U
        bound = 1 / math.sqrt(hidden)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states of all steps [B, L, hidden], and the last one [1, B, hidden], of inputs [B, L, dim]."""
        size = self.candidate.in_features
        gate_inputs, candidate_inputs = self.inputs(inputs).split([2 * size, size], dim=2)
        state = inputs.new_zeros(len(inputs), size)
        states = []
        for gate_input, candidate_input in zip(
            gate_inputs.unbind(1), candidate_inputs.unbind(1), strict=True
        ):
            reset, keep = torch.sigmoid(gate_input + self.gates(state)).chunk(2, dim=1)
            new = torch.tanh(candidate_input + self.candidate(reset * state))
            state = torch.lerp(new, state, keep)
            states.append(state)
        return torch.stack(states, dim=1), state[None]
