"""Worked numbers and scipy as the oracle for correlations, tests, intervals and corrections."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from linker.base.errors import InputError
from linker.evaluation import evaluate
from linker.evaluation.correlation import average_ranks, mse, pearson, spearman, williams_from_scores
from linker.evaluation.evaluator import Resampling
from linker.evaluation.significance import bootstrap, holm, paired_t, randomisation, williams

RNG = np.random.default_rng(5)


def test_williams_worked_example() -> None:
    result = williams(0.65, 0.55, 0.3, 50)
    assert result.statistic == pytest.approx(0.816078, abs=1e-6)
    assert [result.df, result.p] == pytest.approx([47, 0.209286], abs=1e-6)


def test_williams_from_raw_scores() -> None:
    human, a, b = list(range(1, 9)), [1, 3, 2, 4, 6, 5, 8, 7], [2, 1, 5, 3, 4, 8, 6, 7]
    assert [pearson(human, a), pearson(human, b), pearson(a, b)] == pytest.approx(
        [0.92857, 0.83333, 0.61905], abs=1e-5
    )
    result = williams_from_scores(human, a, b)
    assert [result.statistic, result.df, result.p] == pytest.approx([1.04742, 5, 0.17144], abs=1e-5)


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ((0.5, 0.4, 1.0, 50), "perfectly"), ((0.5, 0.4, -1.0, 50), "perfectly"),
        ((0.5, 0.4, 0.3, 3), "three"), ((math.nan, 0.4, 0.3, 50), "constant"),
    ],
)  # fmt: skip
def test_williams_says_why_it_is_undefined(args: tuple[float, float, float, int], reason: str) -> None:
    result = williams(*args)
    assert math.isnan(result.p) and reason in result.reason


@pytest.mark.parametrize("seed", range(20))
def test_correlations_equal_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 5, 30).astype(float), rng.normal(size=30)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert average_ranks(x) == pytest.approx(stats.rankdata(x))


def test_mse_worked_example_of_the_cross_encoder() -> None:
    assert mse([3.45 / 5, 0.40 / 5, 2.50 / 5], [4.4 / 5, 0.2 / 5, 2.5 / 5]) == pytest.approx(
        0.012567, abs=1e-6
    )


def test_correlations_of_nothing_and_of_rubbish() -> None:
    assert math.isnan(pearson([1, 1], [1, 2])) and math.isnan(spearman([1], [1])) and math.isnan(mse([], []))
    assert pearson([1e200, 2e200, 3e200], [1, 2, 4]) == pytest.approx(pearson([1, 2, 3], [1, 2, 4]))
    with pytest.raises(InputError, match="the same length"):
        pearson([1, 2], [1])
    with pytest.raises(InputError, match="NaN"):
        mse([1, math.nan], [1, 2])


def test_paired_t_equals_scipy() -> None:
    a, b = RNG.normal(size=40), RNG.normal(size=40)
    expected = stats.ttest_rel(a, b)
    result = paired_t(a, b)
    assert [result.statistic, result.p, result.df] == pytest.approx([expected.statistic, expected.pvalue, 39])
    assert math.isnan(paired_t([1], [2]).p) and math.isnan(paired_t([1, 2], [2, 3]).p)


def test_randomisation_approaches_all_exchanges() -> None:
    a, b = RNG.random(8), RNG.random(8) + 0.2
    d = a - b
    every = [
        abs(sum(s * x for s, x in zip(signs, d, strict=True)))
        for signs in itertools.product((1, -1), repeat=8)
    ]
    exact = np.mean([v >= abs(d.sum()) - 1e-12 for v in every])
    assert randomisation(a, b, samples=20_000, seed=1) == pytest.approx(exact, abs=0.01)
    assert randomisation(a, b, samples=999, seed=1) == randomisation(a, b, samples=999, seed=1)


def test_randomisation_is_never_zero_and_one_for_equals() -> None:
    assert randomisation(np.arange(40) + 1.0, np.zeros(40), samples=99) == 1 / 100
    assert randomisation([1.0, 2.0], [1.0, 2.0], samples=99) == 1
    assert randomisation([0.1], [0.0], samples=99) == 1  # both exchanges differ by the same amount


def test_holm_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    adjusted = holm([0.5, math.nan, 0.9])
    assert adjusted[0] == 1.0 and math.isnan(adjusted[1]) and adjusted[2] == 1.0


def test_bootstrap_covers_the_mean_and_is_seeded() -> None:
    data = RNG.normal(3, 1, 400)
    low, high = bootstrap(data, samples=4000, seed=2)
    half = 1.96 * data.std() / math.sqrt(400)
    assert (low, high) == pytest.approx((data.mean() - half, data.mean() + half), abs=0.02)
    assert bootstrap(data, seed=2) == bootstrap(data, seed=2) != bootstrap(data, seed=3)
    assert bootstrap([2.0] * 5) == (2.0, 2.0) and math.isnan(bootstrap([])[0])


def test_evaluation_carries_intervals() -> None:
    qrels = {str(t): {"a": 1} for t in range(50)}
    run = {str(t): {"a": float(t % 2), "b": 0.5} for t in range(40)}
    e = evaluate(qrels, run, "recip_rank gm_map num_q auc auc_micro", intervals=Resampling(500, seed=1))
    assert set(e.intervals) == {"recip_rank", "gm_map", "auc"}
    for name, (low, high) in e.intervals.items():
        assert low < e[name] < high
    narrow = evaluate(qrels, run, "recip_rank", complete=False, intervals=Resampling(500, 0.5))
    assert e.intervals["recip_rank"][1] < narrow["recip_rank"] < narrow.intervals["recip_rank"][1]
