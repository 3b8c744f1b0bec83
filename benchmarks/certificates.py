"""The two certificates of a review on recorded reading orders: their price, how often they err, and what they notice.

    python -m benchmarks.certificates --work FOLDER [--cpu-minutes M] [--reviews N]

Reading orders of the news topics are recorded once, by the learner of `benchmarks.stopping`: the unread documents in
their order when half and .7 of the relevant ones were found, and when the default rule stopped. On each, audits of the
certificates' prices are drawn many times. Both are certified only if no audited document is relevant. Settings: plain
topics, topics with a second one hidden from the seeds, and plain ones whose unread documents are in random or in
reversed order, as if P(link) misled.
"""

import math
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stopping import hidden_beside
from benchmarks.support.common import shared_data
from benchmarks.support.harness import KEPT, Arguments, Results, benchmark
from benchmarks.support.review_order import Flags, Topics, read_topics
from benchmarks.support.review_runs import HIT, MISS, SEEDS, TARGETS, Case, Review, clustered
from linker.review.stopping import LEAST_FOUND, make
from linker.review.stopping.bounds import short_of
from linker.review.stopping.evidence import Bets, front_of, front_reads

ROUNDS, EARLY, MOST = 6, (0.5, 0.7), 3000
ALPHA = 0.05
ORDERS = ("as ranked", "at random", "reversed")  # orders of the unread documents


@dataclass(frozen=True)
class Moment:
    """The unread documents in their order at a moment of a review, the number found, and the target recall."""

    kind: str
    topic: str
    when: str
    target: float
    found: int
    unread: Flags

    @property
    def left(self) -> int:
        """How many relevant documents are unread."""
        return int(self.unread.sum())

    @property
    def is_short(self) -> bool:
        """Whether the target recall has been missed, so that a certificate of it would be wrong."""
        return self.left >= short_of(self.found, self.target)


def record(folder: Path, seconds: float) -> None:
    """Record the reading orders that `folder` lacks, a file per review, until the CPU time is used."""
    folder.mkdir(exist_ok=True)
    topics = read_topics(shared_data() / "news-topics")
    for case in cases(topics):
        path = folder / f"{'hidden' if case.hidden else 'plain'}-{case.topic}-{case.number}-{case.hidden}.npz"
        if time.process_time() > seconds:
            return
        if not path.exists():
            _record(Review(topics, case), path)
            print(f"{time.process_time():.0f} of {seconds:.0f} CPU seconds: {path.name}", file=sys.stderr)


def cases(topics: Topics) -> Iterator[Case]:
    """Yield the reviews in rounds over all topics that are large enough for a claim."""
    for number in range(ROUNDS):
        for topic in sorted(topics.relevant):
            for hidden in dict.fromkeys(("", hidden_beside(topics, topic, number))):
                size = topics.relevant[topic].sum() + (topics.relevant[hidden].sum() if hidden else 0)
                if size >= LEAST_FOUND + SEEDS:
                    yield Case(topic, number, hidden)


def _record(review: Review, path: Path) -> None:
    rules = {target: make("urn", review.population, target) for target in TARGETS}
    early, moments, found, reads = [*EARLY], dict[str, Any](), 0, 0

    def keep(name: str) -> None:
        moments[name] = review.order.left().astype(np.int16)

    while rules and reads < MOST + review.relevant * 6 // 5 and (candidate := review.order.next()):
        row, reads = int(candidate.id), reads + 1
        review.tell(row)
        found += bool(review.truth[row])
        while early and found >= early[0] * review.relevant:
            keep(f"recall{early.pop(0)}/left")
        for target in [*rules]:
            if rules[target].update(HIT if review.said[row] else MISS).estimated:
                keep(f"stop{target}/left")
                del rules[target]
    np.savez_compressed(path, truth=np.packbits(review.truth), n=len(review.truth), **moments)


def moments(folder: Path) -> Iterator[Moment]:
    """Yield the recorded moments at which the stopping rules may claim something, by target."""
    for path in sorted(folder.glob("*.npz")):
        ((kind, topic),) = re.findall(r"^(\w+?)-(.+?)-\d+-", path.name)
        with np.load(path) as arrays:
            truth = np.unpackbits(arrays["truth"])[: int(arrays["n"])].astype(bool)
            for name in (n for n in arrays.files if n.endswith("/left")):
                unread = truth[arrays[name].astype(np.int64)]
                found, when = int(truth.sum()) - SEEDS - int(unread.sum()), name.removesuffix("/left")
                for target in TARGETS:
                    if found >= LEAST_FOUND and when in (*(f"recall{r}" for r in EARLY), f"stop{target}"):
                        yield Moment(kind, topic, when.rstrip(".0123456789"), target, found, unread)


def prices(moment: Moment) -> dict[str, int]:
    """Return how many random documents without a find certify the target, by certificate."""
    unread, short = len(moment.unread), short_of(moment.found, moment.target)
    ways = {"exact": False, "order": True}
    return {
        name: Bets(ALPHA, moment.target, by_order=way).price(unread, moment.found, short)
        for name, way in ways.items()
    }


def silent(moment: Moment, price: int, front: int, draws: int, chance: np.random.Generator) -> Flags:
    """Return, for each audit, whether it finds nothing: `front` of the `price` documents are from the front."""
    ahead = front_of(len(moment.unread))
    inside = int(moment.unread[:ahead].sum())
    anywhere = chance.hypergeometric(moment.left, len(moment.unread) - moment.left, price - front, draws)
    return np.asarray((anywhere + chance.hypergeometric(inside, ahead - inside, front, draws)) == 0)


def simulated(part: Sequence[Moment], reviews: int) -> dict[str, Any]:
    """Return the prices of both certificates, and how often they are given, err and notice that the target is missed.

    Each moment is audited equally often, `reviews` times in all. `wrong`: the share of all audits; `noticed`: the share
    of the audits of reviews that miss the target in which there is a find.
    """
    chance, draws = np.random.default_rng(0), math.ceil(reviews / len(part))
    topics, cost = [m.topic for m in part], [prices(m) for m in part]
    out: dict[str, Any] = {
        "moments": len(part),
        "reviews": draws * len(part),
        "target_missed": round(float(np.mean([m.is_short for m in part])), 4),
        "price_ratio": clustered([c["order"] / c["exact"] for c in cost], topics),
        "price_ratio_most": round(max(c["order"] / c["exact"] for c in cost), 3),
    }
    for name in ("exact", "order"):
        fronts = [
            min(front_reads(c[name]), front_of(len(m.unread))) if name == "order" else 0
            for m, c in zip(part, cost, strict=True)
        ]
        given = [silent(m, c[name], f, draws, chance) for m, c, f in zip(part, cost, fronts, strict=True)]
        wrong = [float((g & m.is_short).mean()) for g, m in zip(given, part, strict=True)]
        short = [n for n, m in enumerate(part) if m.is_short]
        out[name] = {
            "price_median": float(np.median([c[name] for c in cost])),
            "certified": clustered([float(g.mean()) for g in given], topics),
            "wrong": clustered(wrong, topics),
            "noticed": clustered([1 - wrong[n] for n in short], [topics[n] for n in short])
            if short
            else None,
        }
    return out


def ordered(moment: Moment, order: str, chance: np.random.Generator) -> Moment:
    """Return the moment with its unread documents in another order."""
    unread = {"as ranked": moment.unread, "reversed": moment.unread[::-1]}.get(order)
    unread = chance.permutation(moment.unread) if unread is None else unread
    return Moment(moment.kind, moment.topic, moment.when, moment.target, moment.found, unread)


@benchmark(
    seed=0,
    work=KEPT,
    cpu_minutes=(30.0, "no further orders are recorded after so much CPU time"),
    reviews=(2000, "audits per setting"),
)
def measured(options: Arguments) -> Results:
    orders, rows = options.work / "orders", list[dict[str, Any]]()
    record(orders, options.cpu_minutes * 60)
    known, chance = [*moments(orders)], np.random.default_rng(0)
    for kind in ("plain", "hidden"):
        for order in ORDERS if kind == "plain" else ORDERS[:1]:
            for when in ("recall", "stop"):
                for target in TARGETS:
                    part = [m for m in known if (m.kind, m.when, m.target) == (kind, when, target)]
                    found = simulated([ordered(m, order, chance) for m in part], options.reviews)
                    rows.append({"kind": kind, "order_of": order, "when": when, "target": target, **found})
    return {"topics": len({m.topic for m in known if m.kind == "plain"}), "settings": rows}
