"""A second look at improbable verdicts: the share of found documents that are relevant, before it and after it.

    python -m benchmarks.second_look [--cpu-minutes M]

Simulated reviews of every other news topic, in which 5 or 10 % of all verdicts are wrong, end when the default rule
estimates that .9 is reached, or after `MOST` documents. Then the reviewer judges again what the program names: at most
one in twenty verdicts. The second verdict errs as often as the first one, independently, and replaces it.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.support.common import shared_data
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.review_estimate import clustered
from benchmarks.support.review_order import LEARNER, Flags, read_topics
from benchmarks.support.review_runs import HIT, MISS, SEEDS, Case, Review
from linker.review.interface import Judgement
from linker.review.learning.doubts import doubted, probabilities
from linker.review.learning.model import FOLDS, balanced
from linker.review.stopping import LEAST_FOUND, make

MOST, TARGET, WRONG = 1200, 0.9, (0.05, 0.10)


def read(review: Review) -> tuple[list[int], bool]:
    """Return the rows that a reviewer reads, and whether the rule ended the reading."""
    rule, rows = make("urn", review.population, TARGET), list[int]()
    while len(rows) < MOST and not rule.state.estimated and (candidate := review.order.next()):
        rows.append(int(candidate.id))
        review.tell(rows[-1])
        rule.update(HIT if review.said[rows[-1]] else MISS)
    return rows, rule.state.estimated


def held_out(review: Review, rows: list[int]) -> dict[str, tuple[bool, float]]:
    """Return each read row's verdict, and its score by the learner's model without its fold."""
    labels, fold = review.said[rows], np.arange(len(rows)) % FOLDS
    scores = np.zeros(len(rows))
    for out in range(FOLDS):
        kept = np.flatnonzero(fold != out)
        known = np.concatenate([np.ones(SEEDS, dtype=bool), labels[kept]])
        if known.all():
            return {}
        chosen = [*review.seeds, *(rows[n] for n in kept)]
        svm = LinearSVC(loss="squared_hinge", C=LEARNER.text_c, random_state=0)
        weights = balanced(known, np.ones(len(known)), LEARNER.ratio)
        svm.fit(review.order.matrix[chosen], known, sample_weight=weights)
        scores[fold == out] = (
            review.order.matrix[[rows[n] for n in np.flatnonzero(fold == out)]] @ svm.coef_[0]
        )
    return {str(row): (bool(said), float(s)) for row, said, s in zip(rows, labels, scores, strict=True)}


def precision(truth: Flags, said: Flags) -> float:
    """Return the share of the documents found that are relevant; 1 if none was found."""
    return float(truth[said].mean()) if said.any() else 1.0


def looked(review: Review, wrong: float) -> dict[str, Any]:
    """Return a review before and after its second look."""
    rows, ended = read(review)
    judged = [Judgement("", str(r), "relevant" if review.said[r] else "not") for r in rows]
    chances = {("", id_): p for id_, p in probabilities(held_out(review, rows)).items()}
    again = [int(doubt.judgement.id) for doubt in doubted(judged, chances)]
    after = review.said.copy()
    after[again] = review.truth[again] ^ (review.chance.random(len(again)) < wrong)
    truth, errors = review.truth[rows], int((review.said[rows] & ~review.truth[rows]).sum())
    return {
        "reads": len(rows),
        "ended": ended,
        "looks": len(again) / len(rows),
        "false_finds": errors / len(rows),
        "precision_before": precision(truth, review.said[rows]),
        "precision_after": precision(truth, after[rows]),
        "recall_before": float((truth & review.said[rows]).sum() / review.relevant),
        "recall_after": float((truth & after[rows]).sum() / review.relevant),
        "looks_at_errors": float((review.said[again] != review.truth[again]).mean()) if again else 1.0,
    }


@benchmark(seed=0, cpu_minutes=(10.0, "no further reviews after so much CPU time"))
def measured(given: Arguments) -> Results:
    topics, rows = read_topics(shared_data() / "news-topics"), dict[float, list[dict[str, Any]]]()
    for topic in sorted(topics.relevant)[1::2]:
        for wrong in WRONG if topics.relevant[topic].sum() >= LEAST_FOUND + SEEDS else ():
            if time.process_time() < 60 * given.cpu_minutes:
                found = looked(Review(topics, Case(topic, 0, wrong=wrong)), wrong)
                rows.setdefault(wrong, []).append({"topic": topic, **found})
                print(
                    f"{time.process_time():.0f} CPU s: {wrong} {topic} {found}", file=sys.stderr, flush=True
                )
    return {
        f"{wrong:g}": {"reviews": len(part)}
        | {
            name: clustered([float(r[name]) for r in part], [r["topic"] for r in part])
            for name in part[0]
            if name != "topic"
        }
        for wrong, part in rows.items()
    }
