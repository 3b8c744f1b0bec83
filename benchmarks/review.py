"""Reading orders of a review on news-topics: feedback, ASReview, BM25 by the seeds' headlines; and what feedback costs.

    ASREVIEW_PYTHON=/path/to/asreview-env/bin/python python -m benchmarks.review --work FOLDER [--only orders cost …]

The topics are ordered by size; every other one, starting with the second, is reported (parts of the learner were
chosen on topics that may be among them: see docs/review.md), and all of them next to ASReview. Both read each topic
STARTS times, from its three seeds and from three random relevant documents, until all others are found, at most
LONGEST documents: what takes one of them more counts as LONGEST, and what takes both more is left out. ASReview runs
in its own environment; its reading orders are cached in FOLDER, and without ASREVIEW_PYTHON it is left out. A topic's
ratio is the geometric mean over its starts; intervals are percentiles of 2,000 resamplings of topics. The cost is CPU
time: of a judgement, the least of several reviews.
"""

from __future__ import annotations

import collections
import json
import math
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import records, shared_data
from benchmarks.support.harness import Results, run_parts
from benchmarks.support.hit_data import MeanVectors
from indexes.interface import Document
from linker.engine import Engine, building
from linker.review.interface import Judgement, Order, Seed, Verdict
from linker.review.learning import FeedbackOrder
from linker.review.learning.model import load
from linker.review.orders import MergedOrder
from linker.review.population import Population
from linker.review.settings import Settings

LEVELS, STARTS, LONGEST, RESAMPLED = (0.8, 0.9, 0.95, 1.0), 3, 2500, 2000
LARGE = 9  # copies of the corpus in the largest index
COSTLY, RUNS, JUDGED = ("cocoa", "yen", "corn"), 3, 400  # topics, reviews of each, and judgements in a review
SCRIPT = Path(__file__).with_name("support") / "asreview_reading.py"


@dataclass(frozen=True)
class Topic:
    """A topic: its relevant documents, seeds included, its seeds and their headlines."""

    name: str
    relevant: frozenset[str]
    seeds: tuple[str, ...]
    text: str

    def starting(self, start: int) -> Topic:
        """Return this topic with other seeds, the given ones at start 0."""
        if not start:
            return self
        draw = np.random.default_rng([start, *self.name.encode()])
        seeds = draw.choice(sorted(self.relevant), len(self.seeds), replace=False)
        return replace(self, name=f"{self.name}/{start}", seeds=tuple(map(str, seeds)))

    @property
    def others(self) -> int:
        """How many relevant documents there are in addition to the seeds."""
        return len(self.relevant - set(self.seeds))


def topics() -> list[Topic]:
    """Return the topics by size."""
    folder, relevant = shared_data() / "news-topics", collections.defaultdict(set)
    for line in (folder / "qrels" / "topics.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        name, id_, score = line.split("\t")
        if int(score) > 0:
            relevant[name].add(id_)
    made = [
        Topic(s["_id"], frozenset(relevant[s["_id"]]), tuple(s["metadata"]["documents"]), s["text"])
        for s in records(folder / "seeds.jsonl.gz")
    ]
    return sorted(made, key=lambda t: (len(t.relevant), t.name))


def corpus_engine(work: Path) -> Engine:
    """Return an engine over the corpus, with mean vectors."""
    directory = work / "news"
    # "mean" is a label of this benchmark, not the name of a model.
    building.load_encoder = lambda name, **_: MeanVectors()  # type: ignore[attr-defined]
    if directory.exists():
        return Engine(directory, encoder=MeanVectors())
    building.create(directory, encoder="mean")
    engine = Engine(directory, encoder=MeanVectors())
    every = records(shared_data() / "news-topics" / "corpus.jsonl.gz")
    engine.add(Document(r["_id"], r["text"], r.get("title", "")) for r in every)
    return engine


def read(order: Order, topic: Topic, share: float = 1.0, most: int = LONGEST) -> list[bool]:
    """Return the relevance of the documents read, in order, until this recall or number of documents."""
    need, flags = math.ceil(share * topic.others), list[bool]()
    while sum(flags) < need and len(flags) < most and (candidate := order.next()):
        flags.append(candidate.id in topic.relevant)
        order.tell(Judgement(candidate.seed, candidate.id, "relevant" if flags[-1] else "not"))
    return flags


def feedback(engine: Engine, topic: Topic) -> Order:
    seeds = [Seed(id_, "", document=id_) for id_ in topic.seeds]
    return FeedbackOrder(engine, seeds, Population(engine.collection.rows, seeds, Settings()))


def headlines(engine: Engine, topic: Topic) -> Order:
    """Return the former order of `linker find`: BM25 with the seeds' headlines as one query."""
    seeds = [Seed("s", topic.text, document=topic.seeds[0])]
    settings = Settings(order="rank", mode="bm25")
    return MergedOrder(engine, seeds, settings, Population(engine.collection.rows, seeds, settings))


def reads_to(flags: Sequence[bool], need: int) -> int | None:
    """Return how many documents were read when this many had been found; None if fewer were found."""
    found = np.flatnonzero(flags)
    return int(found[need - 1]) + 1 if 0 < need <= len(found) else None


def interval(values: Sequence[float], summary: Callable[[Any], Any] = np.mean) -> dict[str, Any]:
    """Return the summary of one value per topic, with its 95 % interval over topics."""
    given = np.array(values)
    resamples = np.random.default_rng(0).integers(len(given), size=(RESAMPLED, len(given)))
    low, high = np.percentile([summary(given[d]) for d in resamples], [2.5, 97.5])
    return {
        "value": round(float(summary(given)), 4),
        "low": round(float(low), 4),
        "high": round(float(high), 4),
        "most": round(float(given.max()), 4),
        "topics": len(given),
    }


def _geometric(values: Any) -> Any:
    return np.exp(np.log(values).mean())


def compared(
    ours: dict[str, list[bool]], theirs: dict[str, list[bool]], chosen: Sequence[Topic]
) -> dict[str, Any]:
    """Return the ratios of our reads to theirs, by recall."""
    out: dict[str, Any] = {}
    needs: dict[str, Callable[[Topic], int]] = {"10": lambda t: 10 if t.others >= 10 else 0}
    needs |= {str(share): lambda t, share=share: math.ceil(share * t.others) for share in LEVELS}  # type: ignore[misc]
    for name, need in needs.items():
        topics = [
            [
                [reads_to(flags[t.starting(n).name], need(t)) for flags in (ours, theirs)]
                for n in range(STARTS)
            ]
            for t in chosen
        ]
        known = [[[r or LONGEST for r in pair] for pair in starts if any(pair)] for starts in topics]
        out[f"reads to {name}, ratio"] = interval(
            [_geometric([a / b for a, b in pairs]) for pairs in known if pairs], _geometric
        )
    return out


def asreview(python: Path, work: Path, engine: Engine, chosen: Sequence[Topic]) -> list[dict[str, Any]]:
    """Return ASReview's reading orders by topic; run it on topics that are not cached."""
    row = {id_: number for number, id_ in enumerate(engine.collection.rows.ids)}
    documents = [engine.collection.documents[number] for number in range(len(row))]
    task = {
        "titles": [d.title for d in documents], "texts": [d.text for d in documents], "share": 1.0, "most": LONGEST,
        "topics": [
            {"name": t.name, "relevant": sorted(row[i] for i in t.relevant), "seeds": [row[i] for i in t.seeds]}
            for t in chosen
        ],
    }  # fmt: skip
    (work / "task.json").write_text(json.dumps(task), encoding="utf-8")
    out = work / "asreview.jsonl"
    subprocess.run(
        [str(python), str(SCRIPT), str(work.resolve() / "task.json"), str(out.resolve())],
        check=True,
        cwd=work,
    )
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def beside(
    ours: dict[str, list[bool]], every: Sequence[Topic], peer: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return how feedback compares with ASReview, on the reported topics and on all."""
    theirs = {line["topic"]: [bool(x) for x in line["read"]] for line in peer}
    seconds = sum(line["cpu_s"] for line in peer)
    return {
        "version": peer[0]["version"],
        "cpu_ms per judgement": round(1000 * seconds / sum(map(len, theirs.values())), 2),
        "feedback beside it": compared(ours, theirs, every[1::2]),
        "on all topics": compared(ours, theirs, every),
    }


def per_relevant(flags: dict[str, list[bool]], chosen: Sequence[Topic]) -> dict[str, Any]:
    """Return the reads per relevant document until .95 are found; all reads, where they never are."""
    needs = {t.name: math.ceil(0.95 * t.others) for t in chosen}
    return interval(
        [(reads_to(flags[name], need) or len(flags[name])) / need for name, need in needs.items()]
    )


def orders(work: Path) -> Results:
    """Return how many documents each order reads."""
    engine, every = corpus_engine(work), topics()
    starts = [t.starting(n) for t in every for n in range(STARTS)]
    ours = {t.name: read(feedback(engine, t), t) for t in starts}
    reported = every[1::2]
    results: Results = {
        name: {
            "reads per relevant document at .95": per_relevant(
                {t.name: read(order(engine, t), t, 0.95, len(engine)) for t in reported}, reported
            )
        }
        for name, order in (("feedback", feedback), ("BM25 by headlines", headlines))
    }
    if python := os.environ.get("ASREVIEW_PYTHON"):
        results["ASReview"] = beside(ours, every, asreview(Path(python), work, engine, starts))
    return results


def cost(work: Path) -> Results:
    """Return the CPU time until the first document and per judgement, at the size of the corpus and at LARGE."""
    load()
    engines = {
        "with vectors": corpus_engine(work),
        "text alone": many(work, 1),
        "larger, text alone": many(work, LARGE),
    }
    return {name: spent(engine) for name, engine in engines.items()}


def languages(work: Path) -> Results:
    """Return the CPU time until the first document of a review with lexicons."""
    from benchmarks.review_across import first_document

    return first_document(work, len(many(work, 1)))


def many(work: Path, times: int) -> Engine:
    """Return an engine over this many copies of the corpus, each with a word of its own, without vectors."""
    directory = work / f"times{times}"
    if directory.exists():
        return Engine(directory)
    building.create(directory, encoder="none")
    engine = Engine(directory)
    every = [*records(shared_data() / "news-topics" / "corpus.jsonl.gz")]
    for copy in range(times):
        suffix, word = (f"/{copy}", f" copy{copy}") if copy else ("", "")
        engine.add(Document(r["_id"] + suffix, r["text"] + word, r.get("title", "")) for r in every)
    return engine


def spent(engine: Engine) -> dict[str, Any]:
    """Return the documents, the CPU seconds of the very first document and the CPU milliseconds of a judgement."""
    first: float | None = None
    later = list[float]()
    for topic in (t for t in topics() if t.name in COSTLY):
        runs = list[float]()
        for _ in range(RUNS):
            start = time.process_time()
            order = feedback(engine, topic)
            candidate = order.next()
            shown = time.process_time()
            first = shown - start if first is None else first
            for _ in range(JUDGED):
                assert candidate
                verdict: Verdict = "relevant" if candidate.id.partition("/")[0] in topic.relevant else "not"
                order.tell(Judgement(candidate.seed, candidate.id, verdict))
                candidate = order.next()
            runs.append(time.process_time() - shown)
        later.append(min(runs))
    return {
        "documents": len(engine), "topics": len(later), "judgements": JUDGED,
        "first document, s": round(first or 0, 3),
        "ms per judgement": round(1000 * float(np.mean(later)) / JUDGED, 2),
    }  # fmt: skip


if __name__ == "__main__":
    run_parts({part.__name__: part for part in (orders, cost, languages)})
