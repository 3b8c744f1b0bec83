"""Selection of the triplets in a batch; the only module that uses pytorch-metric-learning."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from indexes.errors import importing

Miner = Literal["multi-similarity", "all"]


def mine(
    texts: Tensor, documents: Tensor, positives: Tensor, miner: Miner, epsilon: float = 0.1
) -> tuple[Tensor, Tensor, Tensor]:
    """Return triplets as rows of (text, its document, another document), int64 [t] each.

    `texts` [n, d] and `documents` [m, d] are L2-normalised; `positives`, bool [n, m], marks the links.
    "multi-similarity" (Wang et al., 2019) keeps links that are farther than the text's nearest other document, and
    other documents nearer than the text's farthest link, with a tolerance of `epsilon`; "all" keeps every triplet.
    Raises MissingExtraError where "multi-similarity" lacks pytorch-metric-learning.
    """
    anchors, linked = positives.nonzero(as_tuple=True)
    kept = ~positives[anchors]  # [links, m]: the documents that can be a link's negative
    if miner == "multi-similarity":
        with torch.no_grad():
            hard_links, hard = _multi_similarity(texts[anchors], documents, linked, epsilon)
        kept = kept & hard & hard_links[:, None]
    link, negative = kept.nonzero(as_tuple=True)
    return anchors[link], linked[link], negative


def _multi_similarity(
    anchors: Tensor, documents: Tensor, linked: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """Return which links, bool [l], and which documents per link, bool [l, m], the miner keeps."""
    with importing("mining with multi-similarity", "train"):
        from pytorch_metric_learning.miners import MultiSimilarityMiner
    labels = torch.arange(len(documents), device=documents.device)
    first, _, second, negative = MultiSimilarityMiner(epsilon)(anchors, linked, documents, labels)
    links = torch.zeros(len(anchors), dtype=torch.bool, device=anchors.device)
    links[first] = True
    pairs = torch.zeros(len(anchors), len(documents), dtype=torch.bool, device=anchors.device)
    pairs[second, negative] = True
    return links, pairs
