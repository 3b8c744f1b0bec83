"""Tests whether the scores of a batch of queries look like those that a calibration was fitted on.

Kolmogorov and Smirnov's two-sample test of each feature of the queries' first hits, with Bonferroni's correction: a
batch of queries of the same kind raises a false alarm with probability at most FALSE_ALARMS.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from indexes.dtypes import Float64Array

FALSE_ALARMS = 0.01  # maximum probability of a false alarm per batch
FEWEST = 20  # minimum number of queries for a warning


def distance(first: Float64Array, second: Float64Array) -> float:
    """Return the largest distance between the distribution functions of two samples [n] and [m]."""
    both = np.concatenate([first, second])
    shares = [
        np.searchsorted(np.sort(sample), both, side="right") / len(sample) for sample in (first, second)
    ]
    return float(np.abs(shares[0] - shares[1]).max())


def p_value(first: Float64Array, second: Float64Array) -> float:
    """Return the asymptotic probability of such a distance between two samples from one distribution."""
    from scipy.special import kolmogorov

    size = len(first) * len(second) / (len(first) + len(second))
    return float(kolmogorov(np.sqrt(size) * distance(first, second)))


def warning(seen: Mapping[str, Float64Array], now: Float64Array, names: Sequence[str]) -> str:
    """Return a warning if first hits' features `now` [n, names] differ from `seen`, those of the fit; "" otherwise."""
    if len(now) < FEWEST or not names:
        return ""
    values = {name: p_value(seen[name], now[:, i]) for i, name in enumerate(names)}
    name = min(values, key=lambda n: values[n])
    if values[name] * len(values) > FALSE_ALARMS:
        return ""
    return (
        f"the scores look unlike those that the probabilities were fitted on ({name}: p = {values[name]:.1g}; false "
        f"alarms: {FALSE_ALARMS:.0%}): calibrate on queries of this kind"
    )
