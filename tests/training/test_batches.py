"""Guarantees of every batch."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.training.batches import Batches, Pairs
from linker.training.retrieval import Judge

links = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 7)), min_size=1, max_size=60, unique=True)


def pairs(chosen: list[tuple[int, int]]) -> Pairs:
    negatives = [[(t * 3 + j) % 8 for j in range(3)] for t in range(10)]
    return Pairs([str(i) for i in range(10)], [str(i) for i in range(8)], chosen, negatives)


@given(links, st.integers(1, 20), st.integers(0, 3), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_batches_hold_every_link_once(
    chosen: list[tuple[int, int]], size: int, epoch: int, hard: int
) -> None:
    batches = Batches(pairs(chosen), size, seed=1, hard_negatives=hard)
    epochs = batches.epoch(epoch)
    assert len(epochs) == len(batches)
    assert sum(len(b.texts) for b in epochs) <= len(chosen)
    for batch in epochs:
        assert len(set(batch.texts.tolist())) == len(batch.texts)
        assert len(set(batch.documents.tolist())) == len(batch.documents)
        assert batch.positives.any(axis=1).all()
        for i, text in enumerate(batch.texts.tolist()):
            for j, document in enumerate(batch.documents.tolist()):
                assert batch.positives[i, j] == ((text, document) in chosen)
    seen = {(t, d) for b in epochs for t in b.texts.tolist() for d in b.documents.tolist()}
    assert set(chosen) <= seen


@pytest.mark.parametrize("hard", [0, 1])
def test_the_order_depends_on_seed_and_epoch_alone(hard: int) -> None:
    chosen = [(i, j) for i in range(10) for j in range(3)]

    def order(seed: int, epoch: int) -> list[list[int]]:
        return [b.documents.tolist() for b in Batches(pairs(chosen), 7, seed, hard).epoch(epoch)]

    assert order(1, 2) == order(1, 2)
    assert order(1, 2) != order(1, 3)
    assert order(1, 2) != order(2, 2)


@pytest.mark.parametrize("hard", [0, 1, 2, 9])
def test_each_text_brings_as_many_hard_negatives_as_asked_for(hard: int) -> None:
    negatives = [list(range(6 + 4 * text, 10 + 4 * text)) for text in range(6)]
    data = Pairs(["t"] * 6, ["d"] * 30, [(i, i) for i in range(6)], negatives)
    (batch,) = Batches(data, 6, seed=1, hard_negatives=hard).epoch(0)
    assert batch.documents.tolist()[:6] == list(range(6))
    for own in negatives:
        assert len(set(own) & set(batch.documents.tolist())) == min(hard, 4)
    assert not batch.positives[:, 6:].any()


def test_bad_links_are_named() -> None:
    with pytest.raises(ValueError, match=r"link \(0, 9\)"):
        Pairs(["a"], ["b"], [(0, 9)])
    with pytest.raises(ValueError, match="no link"):
        Pairs(["a"], ["b"], [])


VECTORS = {
    "a": (1.0, 0.0), "same as a": (1.0, 0.0), "near a": (0.8, 0.6),
    **{f"rival {i}": (0.9, 0.1) for i in range(4)},
}  # fmt: skip


def encoder() -> Any:
    """An encoder whose tokens are the text and whose vectors are given above."""
    return SimpleNamespace(
        tokenizer=SimpleNamespace(encode_batch=lambda texts, _: texts),
        max_length=9,
        encode_ids=lambda texts: np.array([VECTORS[text] for text in texts], np.float32),
    )


def judged(documents: list[str]) -> tuple[list[float], dict[str, float]]:
    """Evaluate the text "a", linked to the first of the documents."""
    judge = Judge(encoder(), Pairs(["a"], documents, [(0, 0)]))
    return judge.ranks(encoder()).tolist(), judge.figures(encoder())


def test_a_tie_counts_against_the_encoder() -> None:
    ranks, figures = judged(["a", "same as a", "near a"])
    assert ranks == [2]
    assert figures == pytest.approx({"mrr": 0.5, "success_1": 0, "success_5": 1})


def test_success_at_five_includes_the_fifth() -> None:
    documents = ["near a", *(f"rival {i}" for i in range(4))]
    assert judged(documents)[1] == pytest.approx({"mrr": 0.2, "success_1": 0, "success_5": 1})
    assert judged([*documents, "same as a"])[1]["success_5"] == 0
