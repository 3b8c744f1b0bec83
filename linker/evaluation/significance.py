"""Significance of differences: bootstrap intervals, paired tests, the correction for multiple tests, and folds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from indexes.dtypes import Float64Array, Int64Array

_CELLS = 1 << 23  # maximum random numbers in memory at a time: 64 MiB


@dataclass(frozen=True, slots=True)
class TestResult:
    """A statistic, its degrees of freedom and p-value; NaN with a `reason` if the test is not defined."""

    statistic: float
    df: int
    p: float
    reason: str = ""

    __test__ = False  # keeps pytest from collecting it


def fold_numbers(count: int, folds: int, seed: int = 0) -> Int64Array:
    """Return each query's random fold, int64 [count], from 0; the sizes of folds differ by at most one."""
    return np.random.default_rng(seed).permutation(count) % folds


def bootstrap(
    values: npt.ArrayLike, *, samples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the mean of `values` [n] (Efron, 1979); NaN when empty."""
    data = np.asarray(values, np.float64)
    if not len(data):
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    means = _in_parts(
        samples, len(data), lambda b: data[rng.integers(0, len(data), (b, len(data)))].mean(axis=1)
    )
    return _middle(means, confidence)


def randomisation(a: npt.ArrayLike, b: npt.ArrayLike, *, samples: int = 10_000, seed: int = 0) -> float:
    """Return the two-sided p-value of Fisher's paired randomisation test on the means of `a` and `b` [n].

    It is (k + 1)/(m + 1), where k of m random exchanges give a difference at least as large as the observed one.
    """
    difference = _difference(a, b)
    difference = difference[difference != 0]  # exchanging equal values changes nothing
    observed = abs(difference.sum()) * (1 - 1e-12)  # summing in another order may change the last digit
    rng = np.random.default_rng(seed)

    def sums(count: int) -> Float64Array:
        signs = rng.integers(0, 2, (count, len(difference)), np.int8) * 2.0 - 1.0
        return np.asarray(np.abs(signs @ difference), np.float64)

    return _p_value(_in_parts(samples, max(len(difference), 1), sums), observed)


def bootstrap_of(
    statistic: Callable[[Float64Array], Float64Array],
    counts: npt.ArrayLike,
    *,
    samples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a statistic of sums, such as F1; NaN when empty.

    `counts` [n, c]: each topic's contribution to the sums. `statistic` takes sums, float64 [samples, c], and returns
    one value per sample.
    """
    data = np.asarray(counts, np.float64)
    n = len(data)
    if not n:
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    values = _in_parts(
        samples, n * data.shape[1], lambda b: statistic(data[rng.integers(0, n, (b, n))].sum(axis=1))
    )
    return _middle(values, confidence)


def randomisation_of(
    statistic: Callable[[Float64Array], Float64Array],
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    samples: int = 10_000,
    seed: int = 0,
) -> float:
    """Return the two-sided p-value of Fisher's paired randomisation test on a statistic of sums, such as F1.

    `a`, `b` [n, c]: each topic's contribution to the sums of the two systems, which are exchanged at random, topic by
    topic. `statistic` is as for `bootstrap_of`; the p-value is computed as in `randomisation`.
    """
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    sums = np.stack((first.sum(axis=0), second.sum(axis=0)))
    change = (second - first)[(second != first).any(axis=1)]  # exchanging equal topics changes nothing
    observed = abs(float(np.diff(statistic(sums))[0])) - 1e-12
    rng = np.random.default_rng(seed)

    def differences(count: int) -> Float64Array:
        moved = rng.integers(0, 2, (count, len(change)), np.int8).astype(np.float64) @ change
        return np.asarray(np.abs(statistic(sums[0] + moved) - statistic(sums[1] - moved)), np.float64)

    return _p_value(_in_parts(samples, max(len(change), 1), differences), observed)


def paired_t(a: npt.ArrayLike, b: npt.ArrayLike) -> TestResult:
    """Return Student's two-sided paired t-test of `a` and `b` [n]; df = n − 1."""
    difference = _difference(a, b)
    df = len(difference) - 1
    if df < 1:
        return TestResult(math.nan, df, math.nan, "fewer than two topics")
    error = float(difference.std(ddof=1)) / math.sqrt(len(difference))
    if error == 0:
        return TestResult(math.nan, df, math.nan, "the difference is the same for every topic")
    t = float(difference.mean()) / error
    return TestResult(t, df, 2 * _t_above(abs(t), df))


def williams(r12: float, r13: float, r23: float, n: int) -> TestResult:
    """Test whether correlation r12 (human, A) exceeds r13 (human, B), given r23 (A, B) on `n` shared items.

    One-sided, df = n − 3 (Williams 1959; Steiger 1980, Psychological Bulletin 87).
    """
    if n <= 3:
        return TestResult(math.nan, n - 3, math.nan, "needs more than three items")
    if not all(math.isfinite(r) for r in (r12, r13, r23)):
        return TestResult(math.nan, n - 3, math.nan, "a correlation is not defined: constant input")
    if abs(r23) >= 1:
        return TestResult(
            math.nan, n - 3, math.nan, "the two systems are perfectly correlated with each other"
        )
    k = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    mean = (r12 + r13) / 2
    below = 2 * k * (n - 1) / (n - 3) + mean**2 * (1 - r23) ** 3
    if below <= 0:
        return TestResult(math.nan, n - 3, math.nan, "the three correlations leave no variance")
    t = (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / below)
    return TestResult(t, n - 3, _t_above(t, n - 3))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p-values (1979), in the order of `p_values`; NaN stays and does not count."""
    defined = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    adjusted, highest = [math.nan] * len(p_values), 0.0
    for step, (p, index) in enumerate(defined):
        highest = max(highest, min(1.0, p * (len(defined) - step)))
        adjusted[index] = highest
    return adjusted


def _difference(a: npt.ArrayLike, b: npt.ArrayLike) -> Float64Array:
    return np.asarray(np.asarray(a, np.float64) - np.asarray(b, np.float64))


def _t_above(t: float, df: int) -> float:
    from scipy.special import stdtr

    return float(stdtr(df, -t))


def _middle(values: Float64Array, confidence: float) -> tuple[float, float]:
    """Return the quantiles that enclose a share `confidence` of `values` [samples]."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def _p_value(differences: Float64Array, observed: float) -> float:
    exceed = int(np.count_nonzero(differences >= observed))
    return (exceed + 1) / (len(differences) + 1)


def _in_parts(samples: int, width: int, draw: Callable[[int], Float64Array]) -> Float64Array:
    """Return `samples` values from `draw`, a part at a time, so that `width` random numbers per value fit in memory."""
    size = max(1, _CELLS // width)
    return np.concatenate([draw(min(size, samples - done)) for done in range(0, samples, size)])
