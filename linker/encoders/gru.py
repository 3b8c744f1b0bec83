"""The recurrent baselines: gated recurrent units (Cho et al., 2014) in one direction or both.

Texts are padded and the states of their last tokens gathered: packed sequences are ten times slower on a CPU. The
backward direction reads each text reversed within its own length: padding always comes last and never affects a text's
states.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from linker.encoders.configs import GruConfig


class Gru(nn.Module):
    """Maps token ids to one vector per text, not normalised: the states of all directions, pooled and projected."""

    def __init__(self, config: GruConfig, tokens: int) -> None:
        super().__init__()
        self.mean = config.pooling == "mean"
        self.embedding = nn.Embedding(tokens, config.dim, padding_idx=0)
        ways = 2 if config.bidirectional else 1
        sizes = [config.dim, *[ways * config.hidden] * (config.layers - 1)]
        self.layers = nn.ModuleList(
            nn.ModuleList(nn.GRU(size, config.hidden, batch_first=True) for _ in range(ways))
            for size in sizes
        )
        self.projection = (
            nn.Identity()
            if config.projection == 0
            else nn.Linear(ways * config.hidden, config.output, bias=False)
        )

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map ids, int64 [B, L], and their mask (True at tokens, then padding) to vectors [B, d], 0 for empty texts."""
        if ids.shape[1] == 0:
            ids, mask = (functional.pad(x, (0, 1)) for x in (ids, mask))
        order = _reversal(mask)
        states = [self.embedding(ids)]  # one per direction, in that direction's reading order
        for layer in self.layers:
            ahead, *back = layer.children()
            inputs = torch.cat([states[0], *(_turned(x, order) for x in states[1:])], dim=-1)
            states = [ahead(inputs)[0], *(gru(_turned(inputs, order))[0] for gru in back)]
        vectors: Tensor = self.projection(torch.cat([self._pooled(x, mask) for x in states], dim=-1))
        return vectors

    def _pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return one state [B, hidden] from the states [B, L, hidden]; 0 for a text without tokens."""
        count = mask.sum(1)
        if self.mean:
            return (states * mask[..., None]).sum(1) / count.clamp(min=1)[:, None]
        rows = torch.arange(len(mask), device=mask.device)
        return states[rows, (count - 1).clamp(min=0)] * mask.any(1, keepdim=True)


def _reversal(mask: Tensor) -> Tensor:
    """Return the positions [B, L] that reverse each text and leave padding in place."""
    places = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - places, places)


def _turned(x: Tensor, order: Tensor) -> Tensor:
    return torch.take_along_dim(x, order[..., None], dim=1)
