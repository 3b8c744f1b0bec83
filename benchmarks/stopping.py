"""When to stop: simulated reviews of news topics, every rule on the same reading orders.

    python -m benchmarks.stopping [--cpu-minutes M] [--partial FILE] [--summarise]

A review is a topic, three of its documents as seeds, and a reviewer. There are plain reviews, and reviewers with 5 or
10 % wrong judgements, or who miss 10 % of the relevant documents. Audits are measured by `benchmarks.certificates`.
Reviews run in rounds, one per topic, until the time is up; reviews
already in the partial file are not repeated.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import shared_data
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.review_order import Topics, read_topics
from benchmarks.support.review_runs import DEFAULT, QUICK, RIVALS, SLOW, TARGETS, Case, clustered, run

Records = Sequence[dict[str, Any]]
ROUNDS = 60  # maximum number of plain reviews per topic; there are fewer of the other kinds
NOISY_ROUNDS = 1
SMALLEST, LARGE = 15, 100
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


def simulate(partial: Path, seconds: float) -> None:
    """Add the records of further reviews to `partial`, one per line, until the CPU time is used."""
    topics = read_topics(shared_data() / "news-topics")
    done = {_name(record) for record in read_records(partial)}
    with partial.open("a", encoding="utf-8") as file:
        for case in plan(topics):
            if time.process_time() > seconds:
                break
            if (case.kind, case.topic, case.number) in done:
                continue
            file.writelines(json.dumps(record, default=float) + "\n" for record in run(topics, case))
            file.flush()
            print(f"{time.process_time():.0f} of {seconds:.0f} CPU seconds, {case}", file=sys.stderr)


def read_records(partial: Path) -> Records:
    """Return the records of a file of parts; none if there is no such file."""
    lines = partial.read_text(encoding="utf-8").splitlines() if partial.exists() else []
    return [json.loads(line) for line in lines]


def _name(record: dict[str, Any]) -> tuple[str, str, int]:
    return record["kind"], record["topic"], record["number"]


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


@benchmark(
    seed=0,
    cpu_minutes=(28.0, "no further reviews after so much CPU time"),
    partial=Path(tempfile.gettempdir()) / "stopping.jsonl",
    summarise=(False, "only summarise what --partial holds"),
)
def measured(options: Arguments) -> Results:
    if not options.summarise:
        simulate(options.partial, options.cpu_minutes * 60)
    return {"learner": "linear SVM over BM25 rows, trained at 5 %", **summary(read_records(options.partial))}
