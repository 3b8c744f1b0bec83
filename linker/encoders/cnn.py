"""The convolutional baseline: filters over windows of word vectors, max-pooled over the text (Kim, 2014)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from linker.encoders.configs import CnnConfig


class TextCnn(nn.Module):
    """Maps token ids to one vector per text, not normalised."""

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
        """Map ids, int64 [B, L], and their mask, bool [B, L] (True: a token), to vectors [B, d], 0 for empty texts."""
        if ids.shape[1] == 0:
            ids, mask = (functional.pad(x, (0, 1)) for x in (ids, mask))
        words = (self.embedding(ids) * mask[..., None]).transpose(1, 2)  # [B, d, L]
        each = zip(self.widths, self.convolutions, strict=True)
        features = torch.cat([_strongest(width, filters, words, mask) for width, filters in each], dim=1)
        vectors: Tensor = self.projection(self.dropout(features))
        return vectors


def _strongest(width: int, filters: nn.Module, words: Tensor, mask: Tensor) -> Tensor:
    """Return the largest positive output of each filter, [B, filters], over windows around each token.

    Positions without a token can be 0 instead of −∞, since the ReLU of a maximum is the maximum of the ReLUs.
    """
    outputs: Tensor = filters(functional.pad(words, ((width - 1) // 2, width // 2)))  # [B, filters, L]
    return outputs.masked_fill(~mask[:, None], 0.0).amax(2).relu()
