"""Other authors' stopping rules, by what they need: the order of reading alone, or the probabilities of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import poisson
from sklearn import config_context
from sklearn.linear_model import LogisticRegression

from benchmarks.support.review_order import Flags, LearningOrder
from linker.review.learning.model import UNCHECKED

CONFIDENCE = 0.95  # confidence level of a point process's bound on the finds left
GROWTH = 1.05  # factor by which the reads grow from one look to the next
FIRST_LOOK, LEAST = 20, 5  # the fewest reads, and finds, at which a rival may stop


def looks(most: int) -> list[int]:
    """Return the numbers of reads after which a rival checks whether it may stop."""
    at, found = float(FIRST_LOOK), list[int]()
    while at <= most:
        found.append(int(at))
        at = max(at * GROWTH, at + 1)
    return found


def power_left(places: Any, read: int, population: int) -> float:
    """Return the finds expected after `read` if their rate falls as a power (maximum likelihood)."""
    exponent = len(places) / max(float(np.log((read + 0.5) / places).sum()), 1e-9)
    return float(len(places) * ((population / read) ** exponent - 1)) if exponent < 50 else np.inf


def exponential_left(places: Any, read: int, population: int) -> float:
    """Return the finds expected after `read` if their rate falls exponentially (maximum likelihood)."""
    mean = float(places.mean()) / read  # mean place of the finds, as a share of the reads

    def excess(fall: float) -> float:
        return float(1 / fall - 1 / np.expm1(fall) - mean)

    if mean >= 0.5 - 1e-6:  # the rate does not fall
        return float(len(places) * (population - read) / read)
    fall = brentq(excess, 1e-6, 500.0)
    behind = np.exp(-fall) - np.exp(-fall * population / read)
    return float(len(places) * behind / -np.expm1(-fall))


PROCESSES = {"point process, power": power_left, "point process, exponential": exponential_left}


def process_stop(name: str, said: Flags, target: float) -> int:
    """Return after how many reads a point process stops (Stevenson & Bin-Hezam, 2023).

    "Stopping methods for technology-assisted reviews based on point processes": it stops when the finds so far are the
    target's share of all relevant documents, if as many are left as the process allows at CONFIDENCE.
    """
    places, found = np.flatnonzero(said) + 1, np.cumsum(said)
    for read in looks(len(said)):
        if (count := int(found[read - 1])) < LEAST:
            continue
        left = PROCESSES[name](places[:count], read, len(said))
        if np.isfinite(left) and count >= target * (count + poisson.ppf(CONFIDENCE, left)):
            return read
    return len(said)


def quant(order: LearningOrder, read: int) -> tuple[int, float, float]:
    """Return the reads, the recall by the probabilities of a model, and the standard deviation of that.

    Yang, Lewis & Frieder, 2021, "Heuristic stopping rules for technology-assisted review": Quant and QuantCI.
    """
    rows, labels, weights = order.training()
    with config_context(**UNCHECKED):
        model = LogisticRegression(solver="liblinear").fit(order.matrix[rows], labels, sample_weight=weights)
        chances = model.predict_proba(order.matrix)[:, 1]
    is_judged = order.judged()
    found, left = (float(chances[part].sum()) for part in (is_judged, ~is_judged))
    spread = [float((chances[part] * (1 - chances[part])).sum()) for part in (is_judged, ~is_judged)]
    whole = found + left
    return read, found / whole, float(np.sqrt(spread[0] / whole**2 + found**2 / whole**4 * sum(spread)))


def quant_stop(seen: list[tuple[int, float, float]], target: float, deviations: float, most: int) -> int:
    """Return after how many reads the recall minus this many deviations reaches the target."""
    return next((read for read, recall, by in seen if recall - deviations * by >= target), most)
