"""Select the triplets in a batch."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Miner = Literal["multi-similarity", "all"]


def mine(
    anchors: Tensor,
    others: Tensor,
    positives: Tensor,
    negatives: Tensor,
    miner: Miner,
    epsilon: float = 0.1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return triplets as three arrays, int64 [t] each: anchors, a link of each, a negative of each.

    `anchors` [n, d] and `others` [m, d] are L2-normalised; `positives` and `negatives`, bool [n, m], mark each anchor's
    candidates. "multi-similarity" (Wang et al., 2019, equations 9 and 10) keeps links that are farther than the
    anchor's nearest negative, and negatives nearer than its farthest link, with a tolerance of `epsilon`; "all" keeps
    every triplet.
    """
    near, far = positives, negatives
    if miner == "multi-similarity":
        with torch.no_grad():
            cosines = anchors @ others.T
            nearest = cosines.masked_fill(~negatives, -torch.inf).amax(1, keepdim=True)
            farthest = cosines.masked_fill(~positives, torch.inf).amin(1, keepdim=True)
        near, far = positives & (cosines - epsilon < nearest), negatives & (cosines + epsilon > farthest)
    anchor, linked = near.nonzero(as_tuple=True)
    link, negative = far[anchor].nonzero(as_tuple=True)
    return anchor[link], linked[link], negative


def of_one_document(links: Tensor) -> tuple[Tensor, Tensor]:
    """Return which of n texts and m documents are each other's positives and negatives, bool [n + m, n + m].

    `links` is bool [n, m]. A document and its texts belong together; nothing is its own positive or negative.
    """
    own = links.to(torch.float32)
    texts, documents = own @ own.T > 0, own.T @ own > 0
    together = torch.cat([torch.cat([texts, links], 1), torch.cat([links.T, documents], 1)])
    alone = ~torch.eye(len(together), dtype=torch.bool, device=links.device)
    return together & alone, ~together & alone
