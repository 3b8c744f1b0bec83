"""How a training run evaluates itself: ranks of linked documents, with ties against the encoder."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from linker.training.batches import Pairs
from linker.training.retrieval import Judge

VECTORS = {
    "a": (1.0, 0.0),
    "same as a": (1.0, 0.0),
    "near a": (0.8, 0.6),
    **{f"rival {i}": (0.9, 0.1) for i in range(4)},
}


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
