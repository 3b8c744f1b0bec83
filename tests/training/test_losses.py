"""The losses against loops over their definitions, the miner against brute force."""

import math

import numpy as np
import pytest
import torch
from pytorch_metric_learning.losses import MultiSimilarityLoss, TripletMarginLoss
from pytorch_metric_learning.miners import MultiSimilarityMiner
from torch import Tensor
from torch.nn.functional import normalize

from linker.training.losses import info_nce, mine, multi_similarity, of_one_document, triplet_margin


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
    a = torch.tensor([[1.0, 0.0]] * 3)
    p, n = torch.tensor([[0.0, 1.0]] * 3), torch.tensor([[-1.0, 0], [1.0, 0], [0, -1.0]])
    # ‖a−p‖ = √2; ‖a−n‖ = 2, 0 and √2: the first triplet is separated by more than the margin and does not count
    expected = ((2**0.5 - 0 + 0.15) + 0.15) / 2
    assert float(triplet_margin(a, p, n, 0.15)) == pytest.approx(expected, abs=1e-5)
    assert float(triplet_margin(a[:1], p[:1], n[:1], 0.15)) == 0
    assert float(triplet_margin(a[:0], p[:0], n[:0], 0.15)) == 0


def test_the_triplet_loss_and_its_miner_are_the_package_s() -> None:
    """As in Danovitch's code: posts and articles are anchors, and a post's article is its label."""
    g = torch.Generator().manual_seed(3)
    both = torch.randn(10, 5, generator=g).requires_grad_()
    labels = torch.tensor([0, 1, 2, 3, 1, 1, 0, 1, 2, 3])
    links = labels[:6, None] == labels[6:]
    expected = TripletMarginLoss(margin=0.15)(both, labels, MultiSimilarityMiner(epsilon=0.1)(both, labels))
    positives, negatives = of_one_document(links)
    unit = normalize(both, dim=-1)  # the package does this itself
    anchors, near, far = (unit[row] for row in mine(unit, unit, positives, negatives, "multi-similarity"))
    found = triplet_margin(anchors, near, far, 0.15)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(*torch.autograd.grad(found, both), *torch.autograd.grad(expected, both))


def test_triplets_of_equal_vectors_have_a_finite_gradient() -> None:
    same = torch.ones(1, 3).requires_grad_()
    torch.autograd.backward(triplet_margin(same, same * 1, torch.zeros(1, 3), 5.0))
    assert same.grad is not None
    assert torch.isfinite(same.grad).all()


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
    """Mine triplets by Wang et al.'s rule, anchor by anchor."""
    cosines, found = (texts @ documents.T).tolist(), set()
    for t, linked in enumerate(positives.tolist()):
        links = [d for d in range(len(linked)) if linked[d]]
        others = [d for d in range(len(linked)) if not linked[d]]
        for d in links:
            if cosines[t][d] - epsilon < max(cosines[t][j] for j in others):
                nearest = min(cosines[t][link] for link in links)
                found |= {(t, d, j) for j in others if cosines[t][j] + epsilon > nearest}
    return found


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 3.0])
def test_multi_similarity_is_its_definition(batch: tuple[Tensor, Tensor, Tensor], epsilon: float) -> None:
    triplets = mine(*batch, ~batch[2], "multi-similarity", epsilon)
    found = list(zip(*(x.tolist() for x in triplets), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == brute_force(*batch, epsilon)


def test_a_link_nearer_than_every_negative_teaches_nothing_next_to_a_far_one() -> None:
    cosines = torch.tensor([0.95, 0.2, 0.5])  # two links and a negative
    others = torch.stack([cosines, (1 - cosines**2).sqrt()], dim=1)
    positives = torch.tensor([[True, True, False]])
    found = mine(torch.tensor([[1.0, 0.0]]), others, positives, ~positives, "multi-similarity")
    assert [x.tolist() for x in found] == [[0], [1], [2]]


def test_all_triplets(batch: tuple[Tensor, Tensor, Tensor]) -> None:
    positives = batch[2]
    triplets = set(zip(*(x.tolist() for x in mine(*batch, ~positives, "all")), strict=True))
    links = positives.nonzero().tolist()
    assert triplets == {(t, d, j) for t, d in links for j in range(5) if not positives[t, j]}


def test_texts_of_one_document_belong_together() -> None:
    links = torch.tensor([[True, False], [True, False], [False, True]])
    positives, negatives = of_one_document(links)
    label = [0, 0, 1, 0, 1]  # labels of three texts and two documents
    for i, own in enumerate(label):
        for j, other in enumerate(label):
            assert bool(positives[i, j]) == (own == other and i != j)
            assert bool(negatives[i, j]) == (own != other)
