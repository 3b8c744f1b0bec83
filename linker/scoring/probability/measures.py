"""The quality of probabilities: calibration error with its noise floor, Brier score against that of the base rate."""

from __future__ import annotations

import numpy as np

from indexes.dtypes import BoolArray, Float64Array

BINS = 10
DRAWS = 200


def calibration_error(probabilities: Float64Array, right: BoolArray, bins: int = BINS) -> float:
    """Return the expected calibration error: mean of |mean probability − share right| over bins of equal mass."""
    if not len(right):
        return float("nan")
    parts = np.array_split(np.argsort(probabilities, kind="stable"), bins)
    gaps = [abs(float(probabilities[part].sum() - right[part].sum())) for part in parts]
    return sum(gaps) / len(right)


def noise_floor(probabilities: Float64Array, seed: int = 0) -> float:
    """Return the mean calibration error that perfect probabilities would have by chance alone."""
    random = np.random.default_rng(seed)
    drawn = [random.random(len(probabilities)) < probabilities for _ in range(DRAWS)]
    return float(np.mean([calibration_error(probabilities, right) for right in drawn]))


def brier(probabilities: Float64Array, right: BoolArray) -> float:
    """Return the mean squared distance between the probabilities and the outcomes."""
    return float(np.mean((probabilities - right) ** 2))


def brier_gain(probabilities: Float64Array, right: BoolArray) -> float:
    """Return the relative reduction of the Brier score against always giving the base rate; 0 if that scores 0."""
    base = float(right.mean() * (1 - right.mean()))
    return 1 - brier(probabilities, right) / base if base else 0.0


def auc(scores: Float64Array, right: BoolArray) -> float:
    """Return the area under the ROC curve, ties counting half; NaN if all links or none are right."""
    positive, negative = int(right.sum()), int((~right).sum())
    if not positive or not negative:
        return float("nan")
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return float((ranks[right].sum() - positive * (positive + 1) / 2) / (positive * negative))


def summary(probabilities: Float64Array, right: BoolArray) -> dict[str, float]:
    """Return the measures of held-out links by name, as JSON values."""
    return {
        "base_rate": float(right.mean()),
        "calibration_error": calibration_error(probabilities, right),
        "noise_floor": noise_floor(probabilities),
        "brier": brier(probabilities, right),
        "brier_gain": brier_gain(probabilities, right),
        "auc": auc(probabilities, right),
    }
