"""Precision, recall and F1 of mined links: a worked example, brute force, intervals and the paired test."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from indexes.dtypes import BoolArray
from linker.evaluation import evaluate
from linker.evaluation.evaluator import Resampling
from linker.evaluation.first_ranks import first_ranks, reciprocal_ranks, successes
from linker.evaluation.mined import best_threshold, compare_f1, f1, mined_links
from linker.evaluation.significance import bootstrap, bootstrap_of, randomisation, randomisation_of

QRELS = {"a": {"x": 1}, "b": {"y": 1, "z": 0}, "c": {"w": 1}, "d": {"v": 1}}
RUN = {
    "a": {"x": 0.9, "y": 0.8},  # right
    "b": {"z": 0.7, "y": 0.6},  # wrong: y is second, and z is judged irrelevant
    "c": {"w": 0.5},  # right
    "o": {"u": 0.4},  # an orphan: has no counterpart
    "p": {"t": 0.95},  # another orphan
}


def test_a_worked_example() -> None:
    mined = mined_links(QRELS, RUN)
    assert (mined.links, mined.unjudged) == (5, 2)
    assert mined.precision == pytest.approx(2 / 5)
    assert mined.recall == pytest.approx(2 / 4)
    assert mined.f1 == pytest.approx(4 / 9)
    above = mined_links(QRELS, RUN, 0.5)
    assert (above.links, above.precision, above.recall) == (4, 0.5, 0.5)
    known = mined_links(QRELS, RUN, known={"p", "o", "d"})
    assert (known.links, known.unjudged) == (3, 0)
    assert known.recall == pytest.approx(2 / 3)
    nothing = mined_links(QRELS, RUN, 2.0)
    assert (nothing.precision, nothing.recall, nothing.f1) == (0, 0, 0)


def test_of_equal_scores_the_greatest_id_is_first_as_in_trec_eval() -> None:
    assert mined_links({"a": {"x": 1}}, {"a": {"x": 0.5, "w": 0.5}}).precision == 1
    assert mined_links({"a": {"w": 1}}, {"a": {"x": 0.5, "w": 0.5}}).precision == 0


def test_the_best_threshold_is_that_of_brute_force() -> None:
    rng = random.Random(0)
    for _ in range(200):
        n = rng.randrange(1, 9)
        qrels = {f"s{i}": {f"t{i}": 1} for i in range(n)}
        run = {f"s{i}": {f"t{rng.randrange(n)}": rng.randrange(4) / 4} for i in range(rng.randrange(1, 12))}
        every = sorted({score for links in run.values() for score in links.values()}, reverse=True)
        values = [mined_links(qrels, run, threshold).f1 for threshold in every]
        assert best_threshold(qrels, run) == every[int(np.argmax(values))]


def test_a_bootstrap_of_sums_is_that_of_means_where_the_statistic_is_a_mean() -> None:
    values = np.random.default_rng(0).random((40, 1))
    assert bootstrap_of(lambda sums: sums[:, 0] / 40, values) == pytest.approx(bootstrap(values[:, 0]))
    assert all(np.isnan(bootstrap_of(lambda sums: sums[:, 0], np.empty((0, 1)))))


def test_randomising_sums_is_that_of_means_where_the_statistic_is_a_sum() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, (2, 30, 1))
    assert randomisation_of(lambda sums: sums[:, 0], a, b) == randomisation(a[:, 0], b[:, 0])


def test_the_p_value_is_near_that_of_all_exchanges() -> None:
    rng = np.random.default_rng(2)
    correct, stated = rng.integers(0, 2, (2, 10, 2))
    a, b = (np.stack((correct[:, i] * stated[:, i], stated[:, i], np.ones(10, int)), axis=1) for i in (0, 1))
    observed = abs(float(f1(a.sum(axis=0, keepdims=True))[0] - f1(b.sum(axis=0, keepdims=True))[0]))
    exceed = 0
    for exchanged in itertools.product((False, True), repeat=10):
        chosen = np.array(exchanged)[:, None]
        sums = [np.where(chosen, x, y).sum(axis=0, keepdims=True) for x, y in ((a, b), (b, a))]
        exceed += abs(float(f1(sums[0])[0] - f1(sums[1])[0])) >= observed - 1e-12
    assert randomisation_of(f1, a, b, samples=20_000) == pytest.approx(exceed / 2**10, abs=0.02)
    assert randomisation_of(f1, a, a) == 1


def test_an_interval_covers_the_true_value_as_often_as_it_says() -> None:
    """If pages are linked and right with probability 0.7, the true F1 is 0.7; 95 % of 100 samples cover it."""
    rng, covered = np.random.default_rng(3), 0
    for _ in range(100):
        right = rng.random(150) < 0.7
        run = {f"s{i}": {f"t{i}" if ok else "no": 1.0} for i, ok in enumerate(right)}
        mined = mined_links({f"s{i}": {f"t{i}": 1} for i in range(150)}, run)
        low, high = mined.intervals(Resampling(300))["f1"]
        assert low <= mined.f1 <= high
        covered += low <= 0.7 <= high
    assert 88 <= covered <= 100


def test_comparing_runs_over_different_pages() -> None:
    qrels = {f"s{i}": {f"t{i}": 1} for i in range(40)}
    good = mined_links(qrels, {f"s{i}": {f"t{i}": 1.0} for i in range(40)})
    bad = mined_links(qrels, {f"s{i}": {f"t{i // 2}": 1.0} for i in range(60)})
    difference, low, high, p = compare_f1(bad, good, Resampling(1000))
    assert difference == pytest.approx(good.f1 - bad.f1)
    assert 0 < low <= difference <= high
    assert p < 0.01
    assert compare_f1(good, good, Resampling(1000)) == (0, 0, 0, 1)


def test_worked_numbers() -> None:
    ranks = first_ranks(np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]], dtype=bool))
    assert ranks.tolist() == [2, np.inf, 1]
    assert reciprocal_ranks(ranks).tolist() == [0.5, 0, 1]
    assert successes(ranks, 1).tolist() == [0, 0, 1]
    assert successes(ranks, 2).tolist() == [1, 0, 1]


@given(arrays.arrays(bool, st.tuples(st.integers(1, 4), st.integers(1, 9))))
def test_as_the_evaluator_has_it(relevant: BoolArray) -> None:
    qrels = {
        f"q{q}": {f"d{d}": int(flag) for d, flag in enumerate(row)} for q, row in enumerate(relevant.tolist())
    }
    run = {query: {document: -int(document[1:]) for document in judged} for query, judged in qrels.items()}
    found = evaluate(qrels, run, ["MRR", "success.1,5"], complete=True)
    ranks = first_ranks(relevant)
    assert np.isclose(found["MRR"], reciprocal_ranks(ranks).mean())
    for cutoff in (1, 5):
        assert np.isclose(found[f"success_{cutoff}"], successes(ranks, cutoff).mean())
