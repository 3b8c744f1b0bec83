"""The convolutional baseline: filters over windows of word vectors, and the strongest answer of each (Kim, 2014)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from linker.encoders.configs import CnnConfig


class TextCnn(nn.Module):
    """Token ids to one vector a text, not normalised."""

    def __init__(self, config: CnnConfig, tokens: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, config.dim, padding_idx=0)
        self.widths = config.widths
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.dim, config.filters, width) for width in config.widths
        )
        self.dropout = nn.Dropout(config.dropout)
        self.projection = nn.Linear(len(config.widths) * config.filters, config.output, bias=False)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map ids [B, L] and their mask [B, L] (True: a token) to vectors [B, d]; zeros without tokens."""
        if ids.shape[1] == 0:
            ids, mask = (functional.pad(x, (0, 1)) for x in (ids, mask))
        words = (self.embedding(ids) * mask[..., None]).transpose(1, 2)  # [B, d, L]
        each = zip(self.widths, self.convolutions, strict=True)
        answers = torch.cat([_strongest(width, filters, words, mask) for width, filters in each], dim=1)
        vectors: Tensor = self.projection(self.dropout(answers))
        return vectors


def _strongest(width: int, filters: nn.Module, words: Tensor, mask: Tensor) -> Tensor:
    """Return the largest positive answer of each filter, [B, filters]; windows stand at each token, zeros outside.

    A zero at the places of no token serves as −∞, for the ReLU of the maximum is the maximum of ReLUs.
    """
    answers: Tensor = filters(functional.pad(words, ((width - 1) // 2, width // 2)))  # [B, filters, L]
    return answers.masked_fill(~mask[:, None], 0.0).amax(2).relu()
