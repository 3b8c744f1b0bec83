"""The convolutional baseline: filters over windows of word vectors, and the strongest answer of each (Kim, 2014)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class CnnConfig:
    """`dim` is the word vectors' dimension; `projection` is the embedding's, by default `dim`."""

    dim: int = 300
    widths: tuple[int, ...] = (3, 4, 5)  # tokens that a filter sees
    filters: int = 100  # of each width
    dropout: float = 0.0  # share of the filters' answers, in training
    projection: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))  # JSON gives a list
        if not self.widths or min(self.dim, self.filters, *self.widths) < 1:
            raise ValueError("dim, filters and widths must be at least 1, with one width or more")
        if self.projection is not None and self.projection < 1:
            raise ValueError("projection must be at least 1")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout = {self.dropout}: a share, at least 0 and below 1, is needed")

    @property
    def output(self) -> int:
        """The embedding's dimension."""
        return self.projection or self.dim


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
