"""The estimate of all relevant documents: what it sees in a review, and how often its interval held."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.support.review_order import Flags
from indexes.dtypes import Float64Array
from linker.evaluation.significance import bootstrap_of
from linker.review.interface import Read
from linker.review.stopping.total import LEAST, QUANTILES, FindHistory

Records = Sequence[dict[str, Any]]
Numbers = NDArray[np.float64]
ESTIMATE = "all"  # the "rule" of the records
FIRST_LOOK, APART = 8, 1.25  # reads, and their growth from one look to the next
LARGEST = 0.1  # largest share of relevant documents that the estimate allows for
FOLDS = 8  # folds of topics, for the estimate of all relevant documents
PHASES = (0.0, 0.25, 0.4, 0.6, 0.75, 0.9, 1.0)  # recalls that divide a review into phases


def estimates(flags: Flags) -> list[tuple[int, int, float]]:
    """Return reads, finds and log odds of a find, at looks a quarter apart, as the estimate of the total sees them."""
    finds, looks, due = FindHistory(), list[tuple[int, int, float]](), float(FIRST_LOOK)
    for read, relevant in enumerate(flags.tolist(), start=1):
        finds.take(Read(relevant))
        if read >= due:
            due *= APART
            if finds.found >= LEAST:
                looks.append((read, finds.found, round(finds.odds, 4)))
    return looks


def estimate(records: Records) -> dict[str, Any]:
    """Return how often the estimate's interval holds on topics it was not fitted to, its width, and its constants.

    Every look of every review counts, grouped by the recall so far; topics above LARGEST are left out altogether.
    """
    rows = [
        (r["topic"], r["relevant"], *look)
        for r in records
        if r["rule"] == ESTIMATE and r["relevant"] <= LARGEST * r["population"]
        for look in r["seen"]
    ]
    topics = np.array([row[0] for row in rows])
    relevant, _, finds, odds = np.array([row[1:] for row in rows], dtype=np.float64).T
    inputs, target = np.stack([odds, np.log(finds)], axis=1), np.log((relevant - finds + 1) / (finds + 1))
    predictions, constants = _fitted(topics, inputs, target)
    low, likely, high = (finds + np.maximum((finds + 1) * np.exp(value) - 1, 0) for value in predictions)
    ends = {"low": np.floor(low), "likely": np.round(likely), "high": np.ceil(high)}
    inside = (ends["low"] <= relevant) & (relevant <= ends["high"])
    phases = {}
    for start, end in itertools.pairwise(PHASES):
        part = (finds / relevant > start) & (finds / relevant <= end)
        phases[f"{start:g} to {end:g}"] = {
            "looks": int(part.sum()),
            "held": clustered(inside[part].astype(float).tolist(), topics[part]),
            "not_above": clustered((relevant <= ends["high"])[part].astype(float).tolist(), topics[part]),
            **{name: round(float(np.median((value / relevant)[part])), 2) for name, value in ends.items()},
        }
    whole = {
        "topics": len(set(topics)),
        "looks": len(rows),
        "held": clustered(inside.astype(float).tolist(), topics),
    }
    return {**whole, "phases": phases, "constants": constants}


def _fitted(topics: Any, inputs: Numbers, target: Numbers) -> tuple[list[Numbers], dict[str, list[float]]]:
    """Return each quantile's prediction per look, by a model of other topics, and the constants fitted to all."""
    from sklearn.linear_model import QuantileRegressor

    names = np.random.default_rng(0).permutation(np.unique(topics))
    predictions, constants = list[Numbers](), dict[str, list[float]]()
    for quantile in QUANTILES:
        model = QuantileRegressor(quantile=quantile, alpha=0, solver="highs")
        predictions.append(np.zeros(len(target)))
        for fold in np.array_split(names, FOLDS):
            out = np.isin(topics, fold)
            predictions[-1][out] = model.fit(inputs[~out], target[~out]).predict(inputs[out])
        model.fit(inputs, target)
        constants[f"{quantile:g}"] = [round(float(v), 3) for v in (model.intercept_, *model.coef_)]
    return predictions, constants


def clustered(values: Sequence[float], topics: Iterable[str]) -> list[float]:
    """Return the mean and its 95 % interval from a bootstrap over whole topics."""
    by_topic: dict[str, list[float]] = {}
    for value, topic in zip(values, topics, strict=True):
        by_topic.setdefault(topic, []).append(value)
    sums = np.array([[sum(v), len(v)] for v in by_topic.values()], dtype=np.float64)

    def mean(of: Float64Array) -> Float64Array:
        return np.asarray(of[:, 0] / of[:, 1])

    return [round(float(v), 4) for v in (*mean(sums.sum(axis=0)[None]), *bootstrap_of(mean, sums))]
