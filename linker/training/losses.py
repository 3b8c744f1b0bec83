"""Losses on L2-normalised vectors of texts, [n, d], and documents, [m, d]."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

Miner = Literal["multi-similarity", "all"]


def mine(
    anchors: Tensor, others: Tensor, positives: Tensor, negatives: Tensor, miner: Miner, epsilon: float = 0.1
) -> tuple[Tensor, Tensor, Tensor]:
    """Return triplets as three arrays of rows, int64 [t] each: anchors, their positives and their negatives.

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
    weights = links.to(torch.float32)
    texts, documents = weights @ weights.T > 0, weights.T @ weights > 0
    linked = torch.cat([torch.cat([texts, links], 1), torch.cat([links.T, documents], 1)])
    others = ~torch.eye(len(linked), dtype=torch.bool, device=links.device)
    return linked & others, ~linked & others


def info_nce(texts: Tensor, documents: Tensor, positives: Tensor, temperature: float) -> Tensor:
    """Return InfoNCE, the mean of −log softmax over links (van den Oord et al., 2018): texts [n, d], documents [m, d].

    `positives`, bool [n, m], is True where a text and a document are linked. The softmax of a link is over its
    document and the documents not linked to its text. Hard negatives are further rows of `documents`.
    """
    logits = texts @ documents.T / temperature
    against = logits.masked_fill(positives, -torch.inf).logsumexp(1, keepdim=True)  # [n, 1]
    per_link = torch.logaddexp(logits, against) - logits  # [n, m]
    return per_link[positives].mean()


def triplet_margin(anchors: Tensor, positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    """Return the mean of the nonzero values of max(0, ‖a − p‖ − ‖a − n‖ + margin); 0 if there are none.

    t triplets, [t, d] each. This is the loss in Danovitch's code; his equation 7 squares the distances.
    """
    near, far = (_distance(anchors, x) for x in (positives, negatives))
    losses = functional.relu(near - far + margin)
    return losses.sum() / losses.count_nonzero().clamp(min=1)


def _distance(x: Tensor, y: Tensor) -> Tensor:
    """Return distances [t], with a finite gradient even at 0."""
    return (x - y).square().sum(-1).clamp(min=1e-12).sqrt()


def multi_similarity(
    cosines: Tensor,
    positives: Tensor,
    negatives: Tensor,
    alpha: float = 2.0,
    beta: float = 50.0,
    base: float = 0.5,
) -> Tensor:
    """Return the multi-similarity loss (Wang et al., 2019, equation 15) of `cosines` [n, m], the mean over n anchors.

    `positives` and `negatives`, bool [n, m], mark the pairs that the miner kept. With λ = `base`, an anchor's loss is
    log(1 + Σ e^(−α(s − λ)))/α over its positives plus log(1 + Σ e^(β(s − λ)))/β over its negatives.
    """
    near = (-alpha * (cosines - base)).masked_fill(~positives, -torch.inf)
    far = (beta * (cosines - base)).masked_fill(~negatives, -torch.inf)
    one = torch.zeros_like(cosines[:, :1])  # e⁰
    pulled = torch.cat([one, near], 1).logsumexp(1) / alpha
    return (pulled + torch.cat([one, far], 1).logsumexp(1) / beta).mean()
