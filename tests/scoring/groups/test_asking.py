"""The pairs that people are asked about: each once, from groups that a test can pass; and promises that are kept."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linker.scoring.groups.asking import MOST, delta_of, passes, sample


def groups(sizes: list[int], probabilities: list[float]) -> list[tuple[float, list[str]]]:
    return [
        (p, [f"{g}-{i}" for i in range(n)]) for g, (n, p) in enumerate(zip(sizes, probabilities, strict=True))
    ]


def test_every_pair_of_few_is_asked_about_once() -> None:
    asked = sample(groups([4, 3, 2, 1], [0.99, 0.97, 0.96, 1.0]), 0.9, 1)
    assert asked is not None and asked.of == len(asked.pairs) == 6 + 3 + 1
    within = {
        pair for _, ids in groups([4, 3, 2], [1.0, 1.0, 1.0]) for pair in itertools.combinations(ids, 2)
    }
    assert set(asked.pairs) == within
    assert passes(10, 9, 10, 0.9, 1) and not passes(10, 8, 10, 0.9, 1)


def test_groups_that_would_fail_are_not_asked_about() -> None:
    sure, doubtful = groups([20] * 5, [0.99] * 5), groups([20] * 5, [0.6] * 5)
    asked = sample([*sure, *((p, [f"d{i}" for i in ids]) for p, ids in doubtful)], 0.9, 1)
    assert asked is not None and asked.threshold == 0.99 and asked.of == 5 * 190 and len(asked.pairs) <= MOST
    assert all(not a.startswith("d") and a.split("-")[0] == b.split("-")[0] for a, b in asked.pairs)
    assert len(set(asked.pairs)) == len(asked.pairs)
    assert sample(doubtful, 0.9, 1) is None and sample([], 0.9, 1) is None


def test_groups_of_one_probability_are_kept_or_dropped_together() -> None:
    asked = sample(groups([2] * 400, [0.97] * 400), 0.9, 1)
    assert asked is not None and asked.of == 400


def test_all_samples_together_spend_five_per_cent() -> None:
    assert sum(delta_of(n) for n in range(1, 60)) == pytest.approx(0.05)


@pytest.mark.parametrize("bias", [0.0, -0.05, -0.12])
def test_a_promise_is_kept_however_wrong_the_probabilities_are(bias: float) -> None:
    """In 400 corpora, whose pairs are right less often than their probability says, by `bias`."""
    rng, broken, certified = np.random.default_rng(7), 0, 0
    for trial in range(400):
        found = groups([8] * 40, rng.uniform(0.86, 1, 40).round(2).tolist())
        asked = sample(found, 0.9, 1, trial)
        if asked is None:
            continue
        above = [(p, ids) for p, ids in found if p >= asked.threshold]
        right = {
            pair: bool(rng.random() < p + bias) for p, ids in above for pair in itertools.combinations(ids, 2)
        }
        said = [right[pair] for pair in asked.pairs]
        if passes(len(said), sum(said), asked.of, 0.9, 1):
            certified += 1
            broken += bool(np.mean(list(right.values())) < 0.9)
    assert broken <= 0.05 * 400
    assert certified > 200 if not bias else certified < 200
