"""Simulate reviews of topics with known relevant documents: how fast they are found, and when a rule stops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from linker.base.errors import InputError
from linker.base.logs import logger
from linker.review import stopping
from linker.review.interface import Judgement, Read, Seed, TotalEstimate
from linker.review.learning import FeedbackOrder
from linker.review.population import Population
from linker.review.settings import Settings
from linker.review.stopping.bounds import needed
from linker.review.stopping.naming import DEFAULT
from linker.review.stopping.rule import LEAST_FOUND

if TYPE_CHECKING:
    from linker.engine.engine import Engine

RECALLS = (0.8, 0.9, 0.95, 1.0)
FEW = 10  # number of documents that suffice for a reader who does not want all of them
SEEDS = 3  # relevant documents that are known at the start
LEFT, TOP, WIDTH, HEIGHT = 60, 24, 640, 360  # margins and size of the plot, in pixels
SHARES = (0.0001, 0.001, 0.01, 0.1, 1.0)  # tick marks on the x axis


@dataclass(frozen=True, slots=True)
class Plan:
    """How topics are reviewed.

    texts: descriptions by topic, with which its reviews start; without them, reviews start with `seeds` random relevant
    documents, or in random order if that is 0. starts: reviews per topic. target, rule: the target recall, and the
    stopping rule by name. most: maximum documents read, None for all. seed: the seed of all random draws.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    seeds: int = SEEDS
    starts: int = 1
    target: float = 0.9
    rule: str = DEFAULT
    most: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Simulated:
    """One review: `found` is the number found after each document read; seeds are neither read nor among `relevant`.

    `stop`: how many reads it took until the stopping rule estimated that the target was reached; None if it never did.
    `total`: the estimate, at that point, of the number of relevant documents in all.
    """

    topic: str
    start: int
    population: int
    relevant: int
    found: Sequence[int]
    stop: int | None
    total: TotalEstimate | None = None

    def reads_to(self, count: int) -> int | None:
        """Return how many documents were read when `count` were found; None if they were not."""
        place = int(np.searchsorted(self.found, count))
        return place + 1 if count > 0 and place < len(self.found) else None

    def reads(self, recall: float) -> int | None:
        """Return how many documents had been read when this recall was reached; None if it was not."""
        return self.reads_to(needed(self.relevant, recall))

    def saved(self, recall: float = 0.95) -> float | None:
        """Return the work saved over sampling (Cohen et al., 2006): the share unread at this recall, less 1 − recall.

        None if the recall was not reached.
        """
        reads = self.reads(recall)
        return None if reads is None else 1 - reads / self.population - (1 - recall)

    @property
    def ndcg(self) -> float:
        """The nDCG of the order of reading; unread documents count as not found."""
        gains = 1 / np.log2(np.arange(2, max(len(self.found), self.relevant) + 2))
        hits = np.diff(self.found, prepend=0) > 0
        return float(gains[: len(hits)][hits].sum() / gains[: self.relevant].sum())

    @property
    def recall(self) -> float | None:
        """The recall at which the rule stopped; None if it did not."""
        return None if self.stop is None else self.found[self.stop - 1] / self.relevant

    def record(self) -> dict[str, object]:
        """Return all measures by name, as JSON values."""
        reads = {f"reads_to_{recall:.0%}".rstrip("%"): self.reads(recall) for recall in RECALLS}
        return {
            "topic": self.topic, "start": self.start, "relevant": self.relevant, "read": len(self.found),
            f"reads_to_first_{FEW}": self.reads_to(FEW), **reads, "wss_95": self.saved(), "ndcg": self.ndcg,
            "stop": self.stop, "recall_at_stop": self.recall, **stopping.by_name(self.total),
        }  # fmt: skip


def simulate(
    engine: Engine, qrels: Mapping[str, Mapping[str, float]], plan: Plan | None = None
) -> Iterator[Simulated]:
    """Yield the reviews of every topic of `qrels` (topic → document → relevance) that has documents left to find.

    A review ends when all relevant documents are found and the rule has stopped, or after `plan.most` documents.
    Raises InputError if a topic lacks a description, or the rule does not exist.
    """
    plan = plan or Plan()
    if lacking := sorted(set(qrels) - set(plan.texts)) if plan.texts else []:
        raise InputError(f"no description of the topic {lacking[0]!r}: give one for each topic, by its id")
    for topic in sorted(qrels):
        relevant = sorted(id_ for id_, grade in qrels[topic].items() if grade > 0 and id_ in engine)
        if not relevant:
            logger.warning("topic %s is left out: the index has none of its relevant documents", topic)
        for start in range(plan.starts):
            seeds = _seeds(topic, relevant, plan, start)
            unread = set(relevant) - {seed.document for seed in seeds}
            if unread:
                yield _read(engine, topic, seeds, unread, plan, start)


def _seeds(topic: str, relevant: Sequence[str], plan: Plan, start: int) -> list[Seed]:
    if plan.texts:
        return [Seed(topic, plan.texts[topic])]
    generator = np.random.default_rng([plan.seed, start, *map(ord, topic)])
    count = min(plan.seeds, max(len(relevant) - 1, 0))
    return [Seed(id_, "", document=id_) for id_ in generator.choice(relevant, count, replace=False).tolist()]


def _read(
    engine: Engine, topic: str, seeds: Sequence[Seed], relevant: set[str], plan: Plan, start: int
) -> Simulated:
    population = Population(engine.collection.rows, seeds, Settings(rule=plan.rule))
    order = FeedbackOrder(engine, seeds, population, seed=plan.seed + start)
    rule = stopping.make(plan.rule, population.size, plan.target)
    found, hits, stop, total = list[int](), 0, None, None
    while plan.most is None or len(found) < plan.most:
        # with fewer documents found, rules make no claim
        may_end = stop is not None or len(relevant) < LEAST_FOUND
        if (hits == len(relevant) and may_end) or (candidate := order.next()) is None:
            break
        hit = candidate.id in relevant
        hits += hit
        found.append(hits)
        order.tell(Judgement(candidate.seed, candidate.id, "relevant" if hit else "not"))
        if rule.update(Read(hit)).estimated and stop is None and population.size > len(found):
            stop, total = len(found), rule.total
    return Simulated(topic, start, population.size, len(relevant), found, stop, total)


def recall_plot(reviews: Sequence[Simulated], target: float) -> str:
    """Return the recall after each read as SVG: a line per review over the share of the documents, on a log scale."""
    least = min(1 / review.population for review in reviews)

    def place(share: float, recall: float) -> str:
        x = LEFT + WIDTH * (1 - math.log(max(share, least)) / math.log(least))
        return f"{x:.1f},{TOP + HEIGHT * (1 - recall):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{TOP + HEIGHT + 50}" '
        'font-family="sans-serif" font-size="13" fill="none">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" stroke="black"/>',
        _label(LEFT + WIDTH / 2, TOP + HEIGHT + 40, "share of documents read"),
        _label(LEFT, TOP - 8, "recall"),
    ]
    for share in (share for share in SHARES if share >= least):
        parts.append(_label(float(place(share, 0).split(",")[0]), TOP + HEIGHT + 18, f"{share:.4g}"))
    for recall in (0.0, 0.5, target, 1.0):
        parts.append(f'<path d="M{place(least, recall)} L{place(1, recall)}" stroke="#ccc"/>')
        parts.append(_label(LEFT - 20, TOP + HEIGHT * (1 - recall) + 4, f"{recall:g}"))
    for review in reviews:
        steps = {*np.flatnonzero(np.diff(review.found, prepend=0)).tolist(), len(review.found) - 1}
        curve = [place((n + 1) / review.population, review.found[n] / review.relevant) for n in sorted(steps)]
        parts.append(f'<path d="M{" L".join(curve)}" stroke="#0b66c3" stroke-opacity=".5"/>')
    return "\n".join([*parts, "</svg>\n"])


def _label(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="black">{text}</text>'
