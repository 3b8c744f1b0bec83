"""When to stop: simulated reviews of news topics, every rule on the same reading orders.

    python -m benchmarks.stopping --work FOLDER [--only rules default hidden]

A review is a topic, three of its documents as seeds, and a reviewer. "rules" compares all rules, on plain reviews and
for reviewers with 5 or 10 % wrong judgements, or who miss 10 % of the relevant documents; "default" reads further
plain reviews, with other seeds, until the default rule has stopped for every target. "hidden" reads to the end, audits
included, where another topic is hidden from the seeds. FOLDER keeps the reviews, so that an interrupted run can be
continued; audits of recorded orders are measured by `benchmarks.certificates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import KeptRows, shared_data
from benchmarks.support.harness import run_parts
from benchmarks.support.review_order import Topics, read_topics
from benchmarks.support.review_runs import (
    DEFAULT,
    QUICK,
    RIVALS,
    SEEDS,
    SLOW,
    TARGETS,
    Case,
    Review,
    clustered,
    longest,
    position,
    run,
)
from linker.review.interface import Phase, Read
from linker.review.stopping import LEAST_FOUND, make
from linker.review.stopping.bounds import needed, short_of

Records = Sequence[dict[str, Any]]
Run = Callable[[Topics, Case], list[dict[str, Any]]]
# Reviews per topic: of "rules" (plain ones), "default" and "hidden".
ROUNDS, MANY_ROUNDS, PAIR_ROUNDS = 12, 59, 4
NOISY_ROUNDS = 1
SMALLEST, LARGE, LARGEST = LEAST_FOUND, 100, 1000
HIDDEN_TARGET, LENGTHS = 0.9, (300, 0.9, 0.95)
SCALES = tuple(name for name in QUICK if "scale" in name)


def plan(topics: Topics) -> Iterator[Case]:
    """Yield the reviews in rounds over all topics."""
    for number in range(ROUNDS):
        for topic in sorted(topics.relevant):
            yield Case(topic, number)
            if number < NOISY_ROUNDS:
                yield Case(topic, number, wrong=0.05)
                yield Case(topic, number, wrong=0.10)
                yield Case(topic, number, missed=0.10)


def hidden_beside(topics: Topics, topic: str, number: int) -> str:
    """Return another topic with at least 10 documents but no more than this one, at most a fifth of them shared."""
    own = topics.relevant[topic]
    fitting = [
        name
        for name, other in sorted(topics.relevant.items())
        if name != topic and 10 <= other.sum() <= own.sum() <= 1000 and (other & own).sum() <= other.sum() / 5
    ]
    return (
        fitting[np.random.default_rng([number, *map(ord, topic)]).integers(len(fitting))] if fitting else ""
    )


def simulated(work: Path, name: str, cases: Callable[[Topics], Iterator[Case]], run: Run) -> Records:
    """Return the records of the reviews of `cases`; those in `work` are not repeated."""
    topics, rows = read_topics(shared_data() / "news-topics"), KeptRows(work / f"{name}.jsonl")
    done = {_name(row) for row in rows}
    for case in cases(topics):
        if (case.kind, case.topic, case.number) not in done:
            rows.keep(*run(topics, case))
    return rows


def _name(record: dict[str, Any]) -> tuple[str, str, int]:
    return record["kind"], record["topic"], record["number"]


def many(topics: Topics) -> Iterator[Case]:
    """Yield further plain reviews than `plan`, of the topics that are large enough for a claim and up to LARGEST."""
    for number in range(ROUNDS, ROUNDS + MANY_ROUNDS):
        for topic, relevant in sorted(topics.relevant.items()):
            if SMALLEST <= relevant.sum() - SEEDS <= LARGEST:
                yield Case(topic, number)


def default_stops(topics: Topics, case: Case) -> list[dict[str, Any]]:
    """Return one record per target: where the default rule stops, which the reading follows no further."""
    review = Review(topics, case)
    rules = {target: make(DEFAULT, review.population, target) for target in TARGETS}
    rows, reads = list[int](), dict[float, int]()
    while rules and len(rows) < longest(review) and (candidate := review.order.next()):
        rows.append(int(candidate.id))
        review.tell(rows[-1])
        for target in [*rules]:
            if rules[target].update(Read(bool(review.said[rows[-1]]))).estimated:
                reads[target] = len(rows)
                del rules[target]
    truth = review.truth[np.concatenate([rows, review.order.left()]).astype(np.int64)]
    about = {"kind": case.kind, "topic": case.topic, "number": case.number, "relevant": review.relevant}
    return [
        {
            **about, "rule": DEFAULT, "target": target, "estimated": target in reads,
            "oracle": position(truth, needed(review.relevant, target)),
            "reads": (end := reads.get(target, len(truth))), "share": int(truth[:end].sum()) / review.relevant,
        }
        for target in TARGETS
    ]  # fmt: skip


def pairs(topics: Topics) -> Iterator[Case]:
    """Yield, in rounds, a review of each topic of at most LARGEST documents for which there is a hidden one."""
    for number in range(PAIR_ROUNDS):
        for topic, relevant in sorted(topics.relevant.items()):
            hidden = hidden_beside(topics, topic, number)
            if not hidden or relevant.sum() > LARGEST:
                continue
            if relevant.sum() + topics.relevant[hidden].sum() >= LEAST_FOUND + SEEDS:
                yield Case(topic, number, hidden)


def whole_reviews(topics: Topics, case: Case) -> list[dict[str, Any]]:
    """Return how the review ends if each audit reads 300 documents, or as many as a certificate of a recall costs."""
    return [whole_review(Review(topics, case), case, length) for length in LENGTHS]


def whole_review(review: Review, case: Case, length: float) -> dict[str, Any]:
    """Read by the default rule, audit at each stop, and read on after a find, until an audit ends without one.

    `length`: documents per audit or, below 1, the recall whose certificate by the order the audit can afford, if that
    takes more than the default number of documents.
    """
    rule, chance = make(DEFAULT, review.population, HIDDEN_TARGET), np.random.default_rng([1, case.number])
    usual, before, audited = rule.audit.size, 1.0, 0

    def take(row: int, phase: Phase) -> None:
        review.tell(row, phase)
        rule.update(Read(bool(review.said[row]), phase))

    while not rule.state.stop and (candidate := None if rule.state.due else review.order.next()):
        take(int(candidate.id), "queue")
        while rule.state.due:
            counts, audit = rule.counts, rule.audit
            if not audited:
                before = counts.found / review.relevant
            short = short_of(counts.found, length)
            price = audit.order_evidence.price(counts.unread, counts.found, short) if length < 1 else length
            audit.size, ended, left = max(int(price), usual), audit.ended, review.order.left()
            while audit.ended == ended and counts.unread:
                front = audit.order_evidence.front(counts.unread) if audit.from_front else 0
                row = int(chance.choice(left[: front or None]))
                left = left[left != row]
                take(row, "front" if front else "audit")
                audited += 1
    return {
        "kind": case.kind, "topic": case.topic, "number": case.number, "hidden": case.hidden, "length": length,
        "before": before, "recall": rule.counts.found / review.relevant, "audited": audited,
        "reads": rule.counts.read + review.population - rule.counts.population,
    }  # fmt: skip


def ended(records: Records) -> list[dict[str, Any]]:
    """Return, by length of the audits: how many pairs reached the target before and after them, and the reads."""
    out = []
    for length in LENGTHS:
        part = [r for r in records if r["length"] == length]
        topics = [r["topic"] for r in part]

        def mean(values: Iterable[float], topics: list[str] = topics) -> list[float]:
            return clustered([float(value) for value in values], topics)

        out.append({
            "length": length, "pairs": len(part), "topics": len({*topics}), "target": HIDDEN_TARGET,
            "before": mean(r["before"] >= HIDDEN_TARGET for r in part),
            "reached": mean(r["recall"] >= HIDDEN_TARGET for r in part),
            "reads": mean(r["reads"] for r in part), "audited": mean(r["audited"] for r in part),
        })  # fmt: skip
    return out


def tested(records: Records, *, test: bool) -> Records:
    """Return the records of the held-out topics (every other one) or, without `test`, those of the other topics."""
    names = sorted({r["topic"] for r in records})
    return [r for r in records if (names.index(r["topic"]) % 2 == 1) == test]


def summary(records: Records) -> dict[str, Any]:
    """Return the reported figures, computed on the held-out topics."""
    test, dev = tested(records, test=True), tested(records, test=False)
    large = [r for r in records if r["relevant"] >= SMALLEST]
    held_out = [r for r in test if r["relevant"] >= SMALLEST]
    return {
        "reviews": len({_name(r) for r in records}),
        "topics": len({r["topic"] for r in records}),
        "chosen_on_dev": chosen([r for r in dev if r["relevant"] >= SMALLEST]),
        "chosen_on_test": chosen(held_out),
        "rules_test": by_rule(held_out),
        "rules_all_topics": by_rule(large),
        "rules_test_large": by_rule([r for r in held_out if r["relevant"] > LARGE]),
        "fewer_than_15": silence([r for r in records if r["relevant"] < SMALLEST]),
        "noise": {kind: by_rule(part) for kind, part in kinds(large).items() if kind != "plain"},
    }


def kinds(records: Records) -> dict[str, Records]:
    """Return the records by kind of review."""
    return {kind: [r for r in records if r["kind"] == kind] for kind in sorted({r["kind"] for r in records})}


def by_rule(records: Records) -> dict[str, Any]:
    """Return, by rule and target: reviews, the share that reached the target, reads over the oracle's, stops."""
    plain = [r for r in records if r["kind"] == "plain"] or records
    rows: dict[str, Any] = {}
    for rule in (*QUICK, *SLOW, *RIVALS):
        for target in TARGETS:
            part = [r for r in plain if r["rule"] == rule and r["target"] == target and "oracle" in r]
            if not part:
                continue
            topics, costs = [r["topic"] for r in part], [r["reads"] / r["oracle"] for r in part]
            rows.setdefault(rule, {})[f"{target:g}"] = {
                "reviews": len(part),
                "reached": clustered([float(r["share"] >= r["target"] - 1e-9) for r in part], topics),
                "times_oracle": clustered(costs, topics),
                "estimated": round(float(np.mean([r["estimated"] for r in part])), 4),
            }
    return rows


def silence(records: Records) -> dict[str, Any]:
    """Return how many reviews of topics with fewer than 15 relevant documents the default rule ended by estimate."""
    part = [r for r in records if r["rule"] == DEFAULT and r["kind"] == "plain"]
    return {"reviews": len(part), "claims": sum(r["estimated"] for r in part)}


def chosen(records: Records) -> dict[str, Any]:
    """Return the cheapest urn that reaches every target in 95 % of the reviews of `records`."""
    rows = by_rule(records)
    fits = [u for u in SCALES if u in rows and all(v["reached"][0] >= 0.95 for v in rows[u].values())]
    cheapest = min(fits, key=lambda u: rows[u]["0.9"]["times_oracle"][0], default=None)
    return {"urn": cheapest, "rules": {u: rows[u] for u in SCALES if u in rows}}


def rules(work: Path) -> dict[str, Any]:
    """Return how all rules fare."""
    learner = "linear SVM over BM25 rows, trained at 5 %"
    return {"learner": learner, **summary(simulated(work, "rules", plan, run))}


def default(work: Path) -> dict[str, Any]:
    """Return how the default rule fares in further reviews."""
    records = simulated(work, "default", many, default_stops)
    return {
        "reviews": len(records) // len(TARGETS),
        "topics": len({r["topic"] for r in records}),
        "targets": by_rule(records)[DEFAULT],
        "large": by_rule([r for r in records if r["relevant"] > LARGE])[DEFAULT],
    }


def hidden(work: Path) -> list[dict[str, Any]]:
    """Return how whole reviews with a hidden topic end."""
    return ended(simulated(work, "hidden", pairs, whole_reviews))


if __name__ == "__main__":
    run_parts({part.__name__: part for part in (rules, default, hidden)})
