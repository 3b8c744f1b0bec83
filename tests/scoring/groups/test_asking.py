"""The pairs shown to reviewers: each once, from groups that can pass a test; and promises that are kept."""

import itertools

import numpy as np
import pytest

from linker.scoring.groups.asking import BANDS, LEAST, MOST, WITHIN, delta_of, passes, recall, sample, strata
from linker.scoring.groups.stories import Stories


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


def test_groups_of_one_probability_are_kept_together_and_all_samples_spend_five_per_cent() -> None:
    asked = sample(groups([2] * 400, [0.97] * 400), 0.9, 1)
    assert asked is not None and asked.of == 400
    assert sum(delta_of(n) for n in range(1, 60)) == pytest.approx(0.05)


@pytest.mark.parametrize("bias", [0.0, -0.05, -0.12])
def test_a_promise_is_kept_however_wrong_the_probabilities_are(bias: float) -> None:
    """In 100 corpora, pairs are right less often than their probability says: the difference is `bias`."""
    rng, broken, certified = np.random.default_rng(7), 0, 0
    for trial in range(100):
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
    assert broken <= 0.05 * 100
    assert certified > 50 if not bias else certified < 50


def stories_of(rng: np.random.Generator, groups: int = 60, size: int = 4, apart: int = 3000) -> Stories:
    """Return groups of different texts and a near copy, and pairs between them whose probabilities are mostly small."""
    count = groups * size + 1
    labels = np.concatenate([np.repeat(np.arange(groups), size), [0]])
    ends = np.sort(rng.integers(0, count - 1, (apart, 2)), axis=1)
    pairs = np.unique(ends[labels[ends[:, 0]] != labels[ends[:, 1]]], axis=0)
    leader = np.append(np.arange(count - 1), 0)
    ones = np.ones(count)
    return Stories(labels, leader, ones, ones, pairs, rng.beta(0.3, 6, len(pairs)))


def test_strata_are_the_pairs_within_groups_and_those_between_by_their_probability() -> None:
    stories = stories_of(np.random.default_rng(1))
    ids = [f"d{i}" for i in range(len(stories.labels))]
    within, *between = strata(stories, ids)
    label = dict(zip(ids, stories.labels.tolist(), strict=True))
    assert within.of == 60 * 6 and len(within.pairs) == WITHIN == len(set(within.pairs))
    assert all(label[a] == label[b] and "d240" not in (a, b) for a, b in within.pairs)
    probability = {
        (ids[a], ids[b]): p
        for (a, b), p in zip(stories.pairs.tolist(), stories.probabilities.tolist(), strict=True)
    }
    high = np.inf
    for stratum, low in zip(between, BANDS, strict=True):
        inside = {pair for pair, p in probability.items() if low <= p < high}
        assert stratum.of == len(inside) and set(stratum.pairs) <= inside
        assert min(LEAST, stratum.of) <= len(stratum.pairs) == len(set(stratum.pairs))
        high = low
    assert 200 < sum(len(s.pairs) for s in (within, *between)) <= 300


def test_no_pairs_are_no_error() -> None:
    nothing = np.empty(0, np.int64)
    none = Stories(nothing, nothing, np.empty(0), np.empty(0), nothing.reshape(0, 2), np.empty(0))
    assert [(s.of, s.pairs) for s in strata(none, [])] == [(0, ())] * 3
    assert recall([(0, 0, 0)] * 4) == (1.0, 1.0, 1.0)
    assert recall([(10, 10, 5), (20, 20, 5)]) == (0.5, 0.5, 0.5), "all pairs are judged"
    assert recall([(10, 0, 0), (20, 0, 0)]) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize("bias", [0.5, 1.0, 3.0])
def test_the_interval_of_the_recall_is_valid_however_wrong_the_probabilities_are(bias: float) -> None:
    """In 100 corpora, pairs between groups are right `bias` times as often as their probability says."""
    rng, covered, widths = np.random.default_rng(5), 0, []
    for trial in range(100):
        stories = stories_of(rng)
        ids = [f"d{i}" for i in range(len(stories.labels))]
        found = strata(stories, ids, trial)
        right = {
            (ids[a], ids[b])
            for (a, b), p in zip(stories.pairs.tolist(), stories.probabilities.tolist(), strict=True)
            if rng.random() < p * bias
        }
        parts = [ids[i : i + 4] for i in range(0, 240, 4)]
        inside = [pair for part in parts for pair in itertools.combinations(part, 2)]
        together = {pair for pair in inside if rng.random() < 0.9}
        said, low, high = recall([(s.of, len(s.pairs), len({*s.pairs} & (right | together))) for s in found])
        truth = len(together) / (len(together) + len(right))
        covered += low <= truth <= high
        widths.append(high - low)
        assert low <= said <= high
    assert covered >= 0.95 * 100
    assert np.mean(widths) < 0.5
