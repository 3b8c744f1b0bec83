"""The losses against loops over their definitions, the miner against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pytorch_metric_learning.losses import MultiSimilarityLoss
from torch import Tensor
from torch.nn.functional import normalize

from linker.training.losses import info_nce, multi_similarity, triplet_margin
from linker.training.miners import mine


@pytest.fixture
def batch() -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    texts = normalize(torch.randn(4, 6, generator=g), dim=-1)
    documents = normalize(torch.randn(5, 6, generator=g), dim=-1)
    positives = torch.zeros(4, 5, dtype=torch.bool)
    for text, document in ((0, 0), (1, 1), (2, 1), (3, 2), (3, 3)):  # document 4 is a hard negative
        positives[text, document] = True
    return texts, documents, positives


def test_info_nce_is_its_definition(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    texts, documents, positives = batch
    logits = (texts @ documents.T / 0.1).tolist()
    losses = []
    for t, d in positives.nonzero().tolist():
        others = [logits[t][j] for j in range(5) if not positives[t, j]]
        losses.append(-math.log(math.exp(logits[t][d]) / sum(math.exp(x) for x in [logits[t][d], *others])))
    assert float(info_nce(texts, documents, positives, 0.1)) == pytest.approx(np.mean(losses), rel=1e-5)


def test_info_nce_without_negatives_is_zero_and_finite() -> None:
    texts = torch.eye(1, 3).requires_grad_()
    loss = info_nce(texts, torch.eye(1, 3), torch.ones(1, 1, dtype=torch.bool), 0.05)
    torch.autograd.backward(loss)
    assert float(loss.detach()) == 0
    assert texts.grad is not None
    assert torch.isfinite(texts.grad).all()


def test_triplet_margin_worked() -> None:
    a, p, n = (
        torch.tensor([[1.0, 0.0]] * 2),
        torch.tensor([[0.0, 1.0]] * 2),
        torch.tensor([[-1.0, 0], [1.0, 0]]),
    )
    # ‖a−p‖² = 2; ‖a−n‖² = 4 and 0
    assert float(triplet_margin(a, p, n, 0.15)) == pytest.approx((max(0, 2 - 4 + 0.15) + (2 - 0 + 0.15)) / 2)
    assert float(triplet_margin(a[:0], p[:0], n[:0], 0.15)) == 0


@pytest.mark.parametrize("base", [0.5, 1.0])
def test_multi_similarity_loss_is_the_package_s(base: float) -> None:
    g = torch.Generator().manual_seed(1)
    anchors = normalize(torch.randn(6, 4, generator=g), dim=-1)
    others = normalize(torch.randn(7, 4, generator=g), dim=-1)
    classes, theirs = torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([0, 1, 2, 0, 1, 2, 3])
    positives = classes[:, None] == theirs
    expected = MultiSimilarityLoss(alpha=2, beta=50, base=base)(
        anchors, classes, ref_emb=others, ref_labels=theirs
    )
    found = multi_similarity(anchors @ others.T, positives, ~positives, base=base)
    assert float(found) == pytest.approx(float(expected), rel=1e-5)


def test_multi_similarity_loss_without_pairs_is_zero() -> None:
    cosines = torch.rand(2, 3).requires_grad_()
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    loss = multi_similarity(cosines, nothing, nothing)
    torch.autograd.backward(loss)
    assert float(loss.detach()) == 0
    assert cosines.grad is not None
    assert not cosines.grad.any()


def brute_force(
    texts: Tensor, documents: Tensor, positives: Tensor, epsilon: float
) -> set[tuple[int, int, int]]:
    """Mine triplets by Wang et al.'s rule, link by link."""
    cosines, found = texts @ documents.T, set()
    for t, d in positives.nonzero().tolist():
        others = [j for j in range(len(documents)) if j != d]
        if cosines[t, d] - epsilon < max(cosines[t, j] for j in others):
            hard = (j for j in others if not positives[t, j] and cosines[t, j] + epsilon > cosines[t, d])
            found |= {(t, d, j) for j in hard}
    return found


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 3.0])
def test_multi_similarity_is_its_definition(batch: tuple[Tensor, Tensor, Tensor], epsilon: float) -> None:
    triplets = mine(*batch, "multi-similarity", epsilon)
    found = list(zip(*(x.tolist() for x in triplets), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == brute_force(*batch, epsilon)


def test_all_triplets(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    positives = batch[2]
    triplets = set(zip(*(x.tolist() for x in mine(*batch, "all")), strict=True))
    links = positives.nonzero().tolist()
    assert triplets == {(t, d, j) for t, d in links for j in range(5) if not positives[t, j]}
