"""Losses over L2-normalised vectors: texts [n, d], documents [m, d] and which of them belong together, [n, m]."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def info_nce(texts: Tensor, documents: Tensor, positives: Tensor, temperature: float) -> Tensor:
    """Return the mean over links of −log softmax of the linked document among the batch's (van den Oord et al., 2018).

    `positives` [n, m] is True where a text is linked; a text's other documents do not count against it. Hard negatives
    are further rows of `documents` that nothing is linked to.
    """
    logits = texts @ documents.T / temperature
    against = logits.masked_fill(positives, -torch.inf).logsumexp(1, keepdim=True)  # [n, 1]
    per_link = torch.logaddexp(logits, against) - logits  # [n, m]
    return per_link[positives].mean()


def triplet_margin(anchors: Tensor, positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    """Return mean max(0, ‖a − p‖² − ‖a − n‖² + margin) over triplets, each [t, d]; zero where there is none."""
    near = (anchors - positives).square().sum(-1)
    far = (anchors - negatives).square().sum(-1)
    return functional.relu(near - far + margin).sum() / max(len(anchors), 1)


def cosine_mse(texts: Tensor, documents: Tensor, targets: Tensor) -> Tensor:
    """Return the mean squared error between cosines of aligned rows [n, d], [n, d] and `targets` [n]."""
    return functional.mse_loss((texts * documents).sum(-1), targets)
