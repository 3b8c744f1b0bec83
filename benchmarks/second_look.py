"""Second looks at doubtful verdicts: the precision of the documents found, with some wrong verdicts, before and after.

    python -m benchmarks.second_look [--cpu-minutes M]

Simulated reviews of every other news topic, in which none, 5 or 10 % of all verdicts are wrong, end when the default
rule estimates that .9 is reached, or after `MOST` documents. The reviewer looks again at what the program lists,
`BATCH` verdicts at a time, until the list is empty: at the end, or also whenever the reads have doubled. A later look
errs as often as the first one, independently, and its verdict replaces the earlier one. Constants were chosen on the
other topics.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.support.common import shared_data
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.review_order import LEARNER, Flags, read_topics
from benchmarks.support.review_runs import HIT, MISS, SEEDS, Case, Review, clustered
from linker.review.interface import Judgement
from linker.review.learning.doubts import doubted, looked
from linker.review.learning.model import FOLDS, balanced
from linker.review.stopping import LEAST_FOUND, make

MOST, TARGET, WRONG = 1200, 0.9, (0.0, 0.05, 0.10)
# numbers of verdicts before the list is rebuilt, and of reads before the first early looks
BATCH, FIRST = 25, 50
SHARES = (0.025, 0.05, 0.075, 0.1, 0.15)  # shares of the reads that are spent on looks


class Reading:
    """A review's verdicts in the order of reading, by row, with the looks at them."""

    def __init__(self, review: Review, wrong: float) -> None:
        self.review, self.wrong = review, wrong
        self.verdicts: dict[int, Judgement] = {}
        self.looks = self.hits = 0
        self.precisions: list[tuple[int, float]] = []  # recorded after each number of looks

    def read(self, *, early: bool) -> bool:
        """Read until the rule estimates that the target is reached, or `MOST` documents; return whether it does."""
        rule, due = make("urn", self.review.population, TARGET), FIRST
        while len(self.verdicts) < MOST and (candidate := self.review.order.next()):
            row = int(candidate.id)
            self.review.tell(row)
            self.verdicts[row] = Judgement("", candidate.id, "relevant" if self.review.said[row] else "not")
            rule.update(HIT if self.review.said[row] else MISS)
            if early and (rule.state.estimated or len(self.verdicts) >= due):
                due = max(due, 2 * len(self.verdicts))
                self.look()
                rule = make("urn", self.review.population, TARGET)
                for judgement in self.verdicts.values():
                    rule.update(HIT if judgement.relevant else MISS)
            if rule.state.estimated:
                return True
        return False

    def look(self) -> None:
        """Judge again what the program lists, until it lists nothing."""
        while listed := doubted([*self.verdicts.values()], self.scores()):
            for old in (doubt.judgement for doubt in listed[:BATCH]):
                row = int(old.id)
                truth, said = bool(self.review.truth[row]), self.review.said
                said[row] = truth ^ bool(self.review.chance.random() < self.wrong)
                tags = looked(old.tags, changed=bool(said[row]) != old.relevant)
                self.verdicts[row] = Judgement("", old.id, "relevant" if said[row] else "not", tags=tags)
                self.review.order.correct(row, bool(said[row]))
                self.looks, self.hits = self.looks + 1, self.hits + (old.relevant != truth)
                self.precisions.append((self.looks, self.precision))

    def scores(self) -> Mapping[tuple[str, str], float]:
        """Return the score of each row that was read, from the learner's model trained without the row's fold."""
        rows, matrix = [*self.verdicts], self.review.order.matrix
        labels, fold = self.review.said[rows], np.arange(len(rows)) % FOLDS
        scores = np.zeros(len(rows))
        for out in range(FOLDS):
            kept = np.flatnonzero(fold != out)
            known = np.concatenate([np.ones(SEEDS, dtype=bool), labels[kept]])
            if known.all():
                return {}
            svm = LinearSVC(loss="squared_hinge", C=LEARNER.text_c, random_state=0)
            weights = balanced(known, np.ones(len(known)), LEARNER.ratio)
            svm.fit(matrix[[*self.review.seeds, *(rows[n] for n in kept)]], known, sample_weight=weights)
            scores[fold == out] = matrix[[rows[n] for n in np.flatnonzero(fold == out)]] @ svm.coef_[0]
        return {("", str(row)): float(score) for row, score in zip(rows, scores, strict=True)}

    @property
    def truth(self) -> Flags:
        """Whether each row that was read is relevant."""
        return self.review.truth[[*self.verdicts]]

    @property
    def said(self) -> Flags:
        """Whether each row that was read stands as relevant."""
        return self.review.said[[*self.verdicts]]

    @property
    def precision(self) -> float:
        """The share of the documents found that are relevant; 1 if none was found."""
        return float(self.truth[self.said].mean()) if self.said.any() else 1.0


def measure(review: Review, wrong: float, *, early: bool) -> dict[str, Any]:
    """Return the figures of a review before and after its looks."""
    reading = Reading(review, wrong)
    first = review.said.copy()
    ended = reading.read(early=early)
    rows = [*reading.verdicts]
    before, truth = first[rows], reading.truth
    found = {
        "precision_before": float(truth[before].mean()) if before.any() else 1.0,
        "recall_before": float((truth & before).sum() / review.relevant),
    }
    reading.look()
    reads, known = len(rows), [(0, found["precision_before"]), *reading.precisions]
    return {
        "reads": reads, "ended": ended, "looks": reading.looks / reads, "effort": reads + reading.looks,
        "false_finds": float((before & ~truth).mean()), **found,
        "precision_after": reading.precision, "kept_promise": reading.precision >= 0.97,
        "recall_after": float((truth & reading.said).sum() / review.relevant),
        "looks_at_errors": reading.hits / reading.looks if reading.looks else 1.0,
        "precision_at": [max(pair for pair in known if pair[0] <= share * reads)[1] for share in SHARES],
    }  # fmt: skip


def _summaries(rows: Mapping[tuple[float, bool], list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    for (wrong, early), part in sorted(rows.items()):
        topics = [r["topic"] for r in part]
        figures = {name: [r[name] for r in part] for name in part[0] if name not in ("topic", "precision_at")}
        at = np.array([r["precision_at"] for r in part]).T
        yield {
            "wrong": wrong, "early": early, "topics": len(part),
            **{name: clustered([float(v) for v in values], topics) for name, values in figures.items()},
            "precision_at": [clustered(values.tolist(), topics) for values in at],
        }  # fmt: skip


@benchmark(seed=0, cpu_minutes=(10.0, "no further reviews after so much CPU time"))
def measured(options: Arguments) -> Results:
    topics, rows = (
        read_topics(shared_data() / "news-topics"),
        dict[tuple[float, bool], list[dict[str, Any]]](),
    )
    for topic in sorted(topics.relevant)[1::2]:
        for wrong in WRONG if topics.relevant[topic].sum() >= LEAST_FOUND + SEEDS else ():
            for early in (False, True):
                if time.process_time() < 60 * options.cpu_minutes:
                    found = measure(Review(topics, Case(topic, 0, wrong=wrong)), wrong, early=early)
                    rows.setdefault((wrong, early), []).append({"topic": topic, **found})
                    print(
                        f"{time.process_time():.0f} CPU s: {wrong} {early} {topic} {found}", file=sys.stderr
                    )
    return {"shares": SHARES, "reviews": list(_summaries(rows))}
