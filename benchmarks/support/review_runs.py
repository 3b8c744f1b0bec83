"""Simulated reviews: a reading order, and the outcome of each stopping rule on it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import poisson
from sklearn import config_context
from sklearn.linear_model import LogisticRegression

from benchmarks.support.review_order import Flags, LearningOrder, Rows, Topics
from indexes.dtypes import Float64Array
from linker.evaluation.significance import bootstrap_of
from linker.review.interface import Judgement, Phase, Read
from linker.review.learning.model import UNCHECKED
from linker.review.stopping import LEAST_FOUND, Rule, make
from linker.review.stopping.bounds import needed
from linker.review.stopping.rules import Controls, weight

TARGETS = (0.8, 0.9, 0.95)
SEEDS = 3
DEFAULT = "urn"
# Rules that only look at the order; the slow ones run only on the first few reviews of a topic.
# w is "scale" times (1 − target) to the power of 1.25.
QUICK: dict[str, tuple[str, dict[str, Any]]] = {
    "urn": ("urn", {}),
    "urn, w = 20": ("urn", {"w": 20}),
    **{f"urn, scale {scale}": ("urn", {"scale": scale}) for scale in (850, 1050, 1250, 1450, 1650)},
    "50 in a row": ("row", {"gap": 50}),
    "100 in a row": ("row", {"gap": 100}),
    "400 in a row": ("row", {"gap": 400}),
}
SLOW: dict[str, tuple[str, dict[str, Any]]] = {"hypergeometric": ("hypergeometric", {})}
QUANT = {"Quant": 0.0, "QuantCI": 2.0}  # deviations
SLOW_REVIEWS = 2  # per topic
HIT, MISS = Read(True), Read(False)


CONFIDENCE = 0.95  # confidence level of a point process's bound on the finds left
GROWTH = 1.05  # factor by which the reads grow from one look to the next
FIRST_LOOK, LEAST = 20, 5  # the fewest reads, and finds, at which a rival may stop


def looks(most: int) -> list[int]:
    """Return the numbers of reads after which a rival checks whether it may stop."""
    at, found = float(FIRST_LOOK), list[int]()
    while at <= most:
        found.append(int(at))
        at = max(at * GROWTH, at + 1)
    return found


def power_left(places: Any, read: int, population: int) -> float:
    """Return the finds expected after `read` if their rate falls as a power (maximum likelihood)."""
    exponent = len(places) / max(float(np.log((read + 0.5) / places).sum()), 1e-9)
    return float(len(places) * ((population / read) ** exponent - 1)) if exponent < 50 else np.inf


def exponential_left(places: Any, read: int, population: int) -> float:
    """Return the finds expected after `read` if their rate falls exponentially (maximum likelihood)."""
    mean = float(places.mean()) / read  # mean place of the finds, as a share of the reads

    def excess(fall: float) -> float:
        return float(1 / fall - 1 / np.expm1(fall) - mean)

    if mean >= 0.5 - 1e-6:  # the rate does not fall
        return float(len(places) * (population - read) / read)
    fall = brentq(excess, 1e-6, 500.0)
    behind = np.exp(-fall) - np.exp(-fall * population / read)
    return float(len(places) * behind / -np.expm1(-fall))


PROCESSES = {"point process, power": power_left, "point process, exponential": exponential_left}
RIVALS = (*PROCESSES, *QUANT, "QBCB")


def process_stop(name: str, flags: Flags, target: float) -> int:
    """Return after how many reads a point process stops (Stevenson & Bin-Hezam, 2023).

    "Stopping methods for technology-assisted reviews based on point processes": it stops when the finds so far are the
    target's share of all relevant documents, if as many are left as the process allows at CONFIDENCE.
    """
    places, finds = np.flatnonzero(flags) + 1, np.cumsum(flags)
    for read in looks(len(flags)):
        if (count := int(finds[read - 1])) < LEAST:
            continue
        remaining = PROCESSES[name](places[:count], read, len(flags))
        if np.isfinite(remaining) and count >= target * (count + poisson.ppf(CONFIDENCE, remaining)):
            return read
    return len(flags)


def quant(order: LearningOrder, read: int) -> tuple[int, float, float]:
    """Return the reads, the recall according to a model's probabilities, and its standard deviation.

    Yang, Lewis & Frieder, 2021, "Heuristic stopping rules for technology-assisted review": Quant and QuantCI.
    """
    rows, labels, weights = order.training()
    with config_context(**UNCHECKED):
        model = LogisticRegression(solver="liblinear").fit(order.matrix[rows], labels, sample_weight=weights)
        chances = model.predict_proba(order.matrix)[:, 1]
    is_judged = order.judged()
    found, unread = (float(chances[part].sum()) for part in (is_judged, ~is_judged))
    spread = [float((chances[part] * (1 - chances[part])).sum()) for part in (is_judged, ~is_judged)]
    whole = found + unread
    return read, found / whole, float(np.sqrt(spread[0] / whole**2 + found**2 / whole**4 * sum(spread)))


def quant_stop(seen: list[tuple[int, float, float]], target: float, deviations: float, most: int) -> int:
    """Return after how many reads the recall minus this many deviations reaches the target."""
    return next((read for read, recall, by in seen if recall - deviations * by >= target), most)


@dataclass(frozen=True)
class Case:
    """One review: its topic, whose seeds are drawn by `number`; a topic hidden from these; how often judgements err.

    `wrong`: the share of all judgements that are wrong; `missed`: of judgements of relevant documents.
    """

    topic: str
    number: int
    hidden: str = ""
    wrong: float = 0.0
    missed: float = 0.0

    @property
    def kind(self) -> str:
        """A description of the review, in words."""
        if self.hidden:
            return "hidden topic"
        if self.wrong:
            return f"{self.wrong:.0%} wrong"
        return f"{self.missed:.0%} missed" if self.missed else "plain"


class Review:
    """The reviewer's judgements and the truth for a case, by row; without the seeds."""

    def __init__(self, topics: Topics, case: Case) -> None:
        truth = topics.relevant[case.topic].copy()
        self.chance = np.random.default_rng([case.number, *map(ord, case.topic)])
        self.seeds: list[int] = self.chance.choice(np.flatnonzero(truth), SEEDS, replace=False).tolist()
        if case.hidden:
            truth |= topics.relevant[case.hidden]
        flipped = self.chance.random(len(truth)) < np.where(truth, case.wrong + case.missed, case.wrong)
        self.truth, self.said = truth, truth ^ flipped
        self.relevant = int(truth.sum()) - SEEDS
        self.population = len(truth) - SEEDS
        self.order = LearningOrder(topics.matrix, self.seeds, case.number)

    def tell(self, row: int, phase: Phase = "queue") -> None:
        """Pass the reviewer's judgement of a row to the order."""
        self.order.tell(Judgement("", str(row), "relevant" if self.said[row] else "not", phase=phase))


def longest(review: Review, *, noisy: bool = False) -> int:
    """Return the maximum number of documents that a review reads with the learner."""
    return (1500 if noisy else 3000) + review.relevant * 6 // 5


def reading_order(
    review: Review, most: int, looked: list[tuple[int, float, float]] | None = None
) -> tuple[Rows, int]:
    """Return every row in reading order, and how many were read with the learner.

    It learns until a cautious urn (w = 20, target .95) and the 400-in-a-row rule would have stopped, or `most` were
    read; the rest is ordered by the last model. Quant's estimates at its looks go to `looked`.
    """
    urn, row = (
        make("urn", review.population, 0.95, {"w": 20}),
        make("row", review.population, 0.95, {"gap": 400}),
    )
    at = set(looks(most) if looked is not None else ())
    rows: list[int] = []
    done = few = False
    while not (done and (few or urn.state.estimated)) and len(rows) < most:
        candidate = review.order.next()
        if candidate is None:
            break
        rows.append(int(candidate.id))
        review.tell(rows[-1])
        if looked is not None and len(rows) in at:
            looked.append(quant(review.order, len(rows)))
        read = HIT if review.said[rows[-1]] else MISS
        urn.update(read)
        row.update(read)
        done, few = row.counts.gap >= 400, row.counts.found < LEAST_FOUND
    return np.concatenate([rows, review.order.left()]).astype(np.int64), len(rows)


def run(topics: Topics, case: Case) -> list[dict[str, Any]]:
    """Return one record per rule and target of the case."""
    review = Review(topics, case)
    about = {"kind": case.kind, "topic": case.topic, "number": case.number, "relevant": review.relevant}
    about["population"] = review.population
    noisy = bool(case.wrong or case.missed)
    rules = QUICK if noisy or case.number >= SLOW_REVIEWS else QUICK | SLOW
    looked: list[tuple[int, float, float]] | None = None if rules is QUICK else []
    order, learned = reading_order(review, longest(review, noisy=noisy), looked)
    about["learned"] = learned
    records = []
    rows: dict[str, tuple[Rule[Any], int]] = {}  # rules without a target
    for target in TARGETS:
        oracle = position(review.truth[order], needed(review.relevant, target))
        for label, (name, options) in rules.items():
            if label in rows:
                rule, reads = rows[label]
            else:
                scale = options.get("scale")
                given = {"w": weight(target, scale)} if scale else options
                rule = make(name, review.population, target, given)
                reads = first_stop(rule, review.said[order])
            if name == "row":
                rows[label] = rule, reads
            record = {**about, "rule": label, "target": target, "oracle": oracle, "reads": reads}
            record["share"] = int(review.truth[order[:reads]].sum()) / review.relevant
            record["estimated"] = bool(rule.state.estimated and rule.counts.unread)
            records.append(record)
        if looked is not None:
            records += [
                {**about, "target": target, "oracle": oracle, **rival}
                for rival in rivals(review, order, looked, target)
            ]
    return records


def rivals(
    review: Review, order: Rows, looked: list[tuple[int, float, float]], target: float
) -> Iterator[dict[str, Any]]:
    """Yield where other authors' rules stop."""
    said = review.said[order]
    ends = {name: process_stop(name, said, target) for name in PROCESSES}
    ends |= {name: quant_stop(looked, target, by, len(order)) for name, by in QUANT.items()}
    for name, reads in ends.items():
        share = int(review.truth[order[:reads]].sum()) / review.relevant
        yield {"rule": name, "reads": reads, "share": share, "estimated": reads < len(order)}
    if target < 0.95:  # most topics have fewer than 59 documents to serve as controls
        yield {"rule": "QBCB", **controls(review, order, target)}


def position(flags: Flags, count: int) -> int:
    """Return the number of reads until `count` were found."""
    return int(np.searchsorted(np.cumsum(flags), count)) + 1


def first_stop(rule: Rule[Any], said: Flags) -> int:
    """Feed reads to the rule until it reports that the target is reached; return their number."""
    for number, relevant in enumerate(said.tolist(), start=1):
        if rule.update(HIT if relevant else MISS).estimated:
            return number
    return len(said)


def controls(review: Review, order: Rows, target: float) -> dict[str, Any]:
    """Return the end under QBCB, which reads random documents until enough are relevant, then the rest in order."""
    rule = make("qbcb", review.population, target)
    assert isinstance(rule, Controls)
    drawn: set[int] = set()
    for row in review.chance.permutation(order).tolist():
        if rule.drawn >= rule.size:
            break
        drawn.add(row)
        rule.update(Read(bool(review.said[row]), "control"))
    reads = len(drawn)
    for row in order.tolist():
        if rule.state.estimated or not rule.counts.unread:
            break
        if row not in drawn:
            reads += 1
            drawn.add(row)
            rule.update(HIT if review.said[row] else MISS)
        elif review.said[row]:
            rule.update(Read(True, "control", reached=True))
    share = int(review.truth[np.fromiter(drawn, dtype=np.int64)].sum()) / review.relevant
    return {"reads": reads, "share": share, "estimated": bool(rule.counts.unread)}


def clustered(values: Sequence[float], topics: Iterable[str]) -> list[float]:
    """Return the mean and its 95 % interval from a bootstrap over whole topics."""
    by_topic: dict[str, list[float]] = {}
    for value, topic in zip(values, topics, strict=True):
        by_topic.setdefault(topic, []).append(value)
    sums = np.array([[sum(v), len(v)] for v in by_topic.values()], dtype=np.float64)

    def mean(of: Float64Array) -> Float64Array:
        return np.asarray(of[:, 0] / of[:, 1])

    return [round(float(v), 4) for v in (*mean(sums.sum(axis=0)[None]), *bootstrap_of(mean, sums))]
