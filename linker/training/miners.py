"""Which triplets of a batch to learn from; pytorch-metric-learning stays behind this seam."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from indexes.errors import importing

Miner = Literal["multi-similarity", "all"]


def mine(
    texts: Tensor, documents: Tensor, positives: Tensor, miner: Miner, epsilon: float = 0.1
) -> tuple[Tensor, Tensor, Tensor]:
    """Return triplets as rows: (text, its document, another document), int64 [t] each.

    texts [n, d] and documents [m, d] are normalised, `positives` [n, m]. "multi-similarity" (Wang et al., 2019) keeps a
    link that is farther than the text's nearest other document, and other documents nearer than its farthest link, both
    by up to `epsilon`; "all" keeps every triplet.
    """
    anchors, linked = positives.nonzero(as_tuple=True)
    kept = ~positives[anchors]  # [links, m]: the documents that may be a link's negative
    if miner == "multi-similarity":
        with torch.no_grad():
            hard_links, hard = _multi_similarity(texts[anchors], documents, linked, epsilon)
        kept = kept & hard & hard_links[:, None]
    link, negative = kept.nonzero(as_tuple=True)
    return anchors[link], linked[link], negative


def _multi_similarity(
    anchors: Tensor, documents: Tensor, linked: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """Return which links [l] and which documents of each link [l, m] the miner keeps."""
    with importing("mining with multi-similarity", "train"):
        from pytorch_metric_learning.miners import MultiSimilarityMiner
    labels = torch.arange(len(documents), device=documents.device)
    first, _, second, negative = MultiSimilarityMiner(epsilon)(anchors, linked, documents, labels)
    links = torch.zeros(len(anchors), dtype=torch.bool, device=anchors.device)
    links[first] = True
    pairs = torch.zeros(len(anchors), len(documents), dtype=torch.bool, device=anchors.device)
    pairs[second, negative] = True
    return links, pairs
