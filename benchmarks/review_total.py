"""The estimate of all relevant documents: what it sees in simulated reviews, its constants, and how often it holds.

    python -m benchmarks.review_total

The reviews are the plain ones of `benchmarks.stopping`, without topics to which more than a tenth of the documents
belong. Every look of every review counts, grouped by the recall so far.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.support.common import shared_data
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.review_order import Flags, read_topics
from benchmarks.support.review_runs import SEEDS, Case, Review, clustered, longest, reading_order
from linker.review.interface import Read
from linker.review.stopping.total import LEAST, QUANTILES, FindHistory

Numbers = NDArray[np.float64]
Look = tuple[int, float]  # finds, and log odds of a find
ROUNDS = 8  # reviews of each topic
FIRST_LOOK, APART = 8, 1.25  # reads, and their growth from one look to the next
LARGEST = 0.1  # largest share of relevant documents that the estimate allows for
FOLDS = 8  # folds of topics
PHASES = (0.0, 0.25, 0.4, 0.6, 0.75, 0.9, 1.0)  # recalls that divide a review into phases


def looks(flags: Flags) -> list[Look]:
    """Return what the estimate of all sees, at looks a quarter apart."""
    finds, seen, due = FindHistory(), list[Look](), float(FIRST_LOOK)
    for read, relevant in enumerate(flags.tolist(), start=1):
        finds.take(Read(relevant))
        if read >= due:
            due *= APART
            if finds.found >= LEAST:
                seen.append((finds.found, finds.odds))
    return seen


def estimate(reviews: Sequence[tuple[str, int, list[Look]]]) -> dict[str, Any]:
    """Return how often the interval holds on topics that it was not fitted to, its width, and its constants.

    `reviews`: topic, number of relevant documents, and looks.
    """
    rows = [(topic, number, *look) for topic, number, seen in reviews for look in seen]
    topics = np.array([row[0] for row in rows])
    relevant, finds, odds = np.array([row[1:] for row in rows], dtype=np.float64).T
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
        "reviews": len(reviews),
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


@benchmark(seed=0)
def measured(options: Arguments) -> Results:
    topics = read_topics(shared_data() / "news-topics")
    reviews = []
    for case in (Case(topic, number) for number in range(ROUNDS) for topic in sorted(topics.relevant)):
        if topics.relevant[case.topic].sum() - SEEDS <= LARGEST * (len(topics.relevant[case.topic]) - SEEDS):
            review = Review(topics, case)
            order, learned = reading_order(review, longest(review))
            reviews.append((case.topic, review.relevant, looks(review.said[order[:learned]])))
    return estimate(reviews)
