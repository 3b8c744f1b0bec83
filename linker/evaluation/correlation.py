"""Agreement of predicted scores with human scores: Pearson, Spearman with average ranks, mean squared error."""

import math

import numpy as np
import numpy.typing as npt

from indexes.dtypes import Float64Array
from linker.base.errors import InputError
from linker.evaluation.significance import TestResult, williams


def pearson(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return Pearson's r of `x` and `y` [n]; NaN if one is constant. Raises InputError if invalid."""
    a, b = _pair(x, y)
    if len(a) < 2 or (a == a[0]).all() or (b == b[0]).all():
        return math.nan
    a, b = a - a.mean(), b - b.mean()
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    return float(np.clip((a @ b) / math.sqrt((a @ a) * (b @ b)), -1, 1))


def spearman(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return Spearman's rho, which is Pearson's r of the average ranks. NaN and errors are as in `pearson`."""
    a, b = _pair(x, y)
    return pearson(average_ranks(a), average_ranks(b))


def mse(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return the mean squared error of `x` and `y` [n]; NaN if n = 0. Raises InputError as `pearson` does."""
    a, b = _pair(x, y)
    return float(np.mean((a - b) ** 2)) if len(a) else math.nan


def average_ranks(x: npt.ArrayLike) -> Float64Array:
    """Return the ascending ranks of `x` [n], float64 [n], from 1; equal values share the mean of their ranks."""
    _, number, count = np.unique(np.asarray(x, np.float64), return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[number], np.float64)


def williams_from_scores(human: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike) -> TestResult:
    """Test whether `a` correlates better with `human` than `b` does: see `williams`. Raises the errors of `pearson`."""
    return williams(pearson(human, a), pearson(human, b), pearson(a, b), len(np.asarray(human)))


def _pair(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Float64Array, Float64Array]:
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise InputError(f"expected two sequences of the same length; got shapes {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InputError("a score is NaN or infinite: correlations need finite numbers")
    return a, b
