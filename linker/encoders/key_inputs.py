"""Inputs to a relay's keys in addition to a token's vector: its rarity, its frequency in the text, how early it is.

Shapes: B texts, L tokens, h heads.
"""

import torch
from torch import Tensor, nn

from indexes.dtypes import Int64Array
from indexes.text.scoring import lucene_idf

NAMES = ("idf", "count", "first")


class KeyInputs(nn.Module):
    """Weights of a token's idf, log count and log first position, added to the token's scores; they start at zero.

    `idf`, float32 [tokens], is saved with the model; it is zero until `set_idf` is called.
    """

    idf: Tensor

    def __init__(self, heads: int, tokens: int) -> None:
        super().__init__()
        self.find = occurrences
        self.register_buffer("idf", torch.zeros(tokens))
        self.weight = nn.Parameter(torch.zeros(len(NAMES), heads))

    def set_idf(self, found: Int64Array, documents: int) -> None:
        """Set idf from the number of documents in which each token is `found` [tokens], out of `documents` in total."""
        idf = lucene_idf(found, documents)
        self.idf.copy_(torch.from_numpy(idf / idf.max()))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the terms to add to the scores of tokens, [B, h, L], from ids, int64 [B, L], and their mask."""
        return torch.einsum("bfl,fh->bhl", self.features(ids, mask), self.weight)

    def features(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the three features of every token, [B, 3, L]: centred over a text's distinct tokens, 0 at padding.

        The first position is that of the token's first occurrence, as ln(1 + 10 · its share of the length).
        """
        counts, first = self.find(ids, mask)
        length = mask.sum(1, keepdim=True).clamp(min=1)
        found = torch.stack([self.idf[ids], counts.log(), (1 + 10 * first / length).log()], 1)
        share = (mask / counts)[:, None]  # all occurrences of a token together count once
        mean = (found * share).sum(2, keepdim=True) / share.sum(2, keepdim=True).clamp(min=1)
        return (found - mean) * mask[:, None]


def occurrences(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return each token's count in its text and first position, float32 [B, L]; 1 and 0 outside `mask`."""
    values, order = ids.masked_fill(~mask, -1).sort(dim=1, stable=True)
    new = _changes(values)
    runs = new.cumsum(1) - 1  # index of a token's run in the sorted text
    counts = torch.zeros_like(mask, dtype=torch.float32).scatter_add_(1, runs, torch.ones_like(runs).float())
    starts = torch.zeros_like(counts).scatter_reduce_(1, runs, order.float(), "amin", include_self=False)
    back = order.argsort(dim=1)
    found = (x.gather(1, runs).gather(1, back) for x in (counts, starts))
    many, first = found
    return torch.where(mask, many, 1.0), torch.where(mask, first, 0.0)


def occurrences_by_pairs(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the same as `occurrences`, in time and memory quadratic in L, with operators that ONNX has."""
    same = (ids[:, :, None] == ids[:, None]) & mask[:, None]  # [B, L, L]
    places = torch.arange(ids.shape[1], dtype=torch.float32, device=ids.device)
    first = torch.where(same, places, torch.inf).amin(2)
    return torch.where(mask, same.sum(2).float(), 1.0), torch.where(mask, first, 0.0)


def _changes(values: Tensor) -> Tensor:
    """Return where a sorted row's value differs from the previous one, int64 [B, L]; 1 at the first position."""
    new = torch.ones_like(values)
    new[:, 1:] = (values[:, 1:] != values[:, :-1]).long()
    return new
