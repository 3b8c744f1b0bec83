"""Pairs of many seeds: when does a review of them stop?

    python -m benchmarks.review_pairs --work FOLDER

Seeds are tweets, the documents the claims that they repeat (`tweets2claims`), or articles and the statements that they
are about (`statements2articles`), each with one link; in some reviews, half of the seeds have none. A review reads
the default order over a BM25 index, without an encoder or P(link), until the rule has stopped for both targets and the
oracle, which reads the same order, has reached them. The rule's constants were chosen on train.tsv and dev.tsv
(tweets) and dev.tsv (articles); all reviews here are of test.tsv, their seeds drawn at random for each.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import rank_data
from benchmarks.support.common import shared_data
from benchmarks.support.harness import KEPT, Arguments, Results, benchmark
from indexes.interface import Document
from linker.corpora import read_queries
from linker.engine import Engine, building
from linker.review.interface import Judgement, Read, Seed, Verdict
from linker.review.orders import MergedOrder
from linker.review.population import Population
from linker.review.session.reading import make_rule
from linker.review.settings import Settings

SEEDS = 3000
SET = "statements2articles"
TARGETS, LONGEST = (0.8, 0.9), 12_000
# Set, number of seeds per review, share of seeds whose links are removed, number of reviews.
REVIEWS = (
    ("tweets2claims", 30, 0.0, 40), ("tweets2claims", 100, 0.0, 24), ("tweets2claims", 200, 0.5, 10),
    (SET, 30, 0.0, 40), (SET, 100, 0.0, 20), (SET, 400, 0.0, 8), (SET, 200, 0.5, 6),
)  # fmt: skip
Links = set[tuple[str, str]]


def links(split: str) -> Links:
    """Return the pairs of an article and a statement that it is about."""
    judged = rank_data.links(SET)[split].qrels
    return {(article, one) for one, of in judged.items() for article, grade in of.items() if grade > 0}


def seeds_of(split: str, count: int) -> list[Seed]:
    """Return articles that are linked in a split, at most `count`, drawn at random."""
    linked = {article for article, _ in links(split)}
    articles = rank_data.documents_of(shared_data() / SET)
    found = [Seed(d.id, d.text, d.title) for d in articles if d.id in linked]
    order = np.random.default_rng(0).permutation(len(found))[:count]
    return [found[i] for i in order.tolist()]


def statements(work: Path) -> Engine:
    """Return an engine over all statements."""
    directory = work / "statements"
    if directory.exists():
        return Engine(directory)
    building.create(directory, encoder="none")
    engine = Engine(directory)
    engine.add(Document(q.id, q.text) for q in read_queries(shared_data() / SET / "queries.jsonl.gz"))
    return engine


def stops(work: Path) -> list[dict[str, Any]]:
    """Return how the reviews end, by set, number of seeds and target."""
    out = []
    for name, count, empty, number in REVIEWS:
        engine, seeds, right = tested(work, name)
        read = [one_review(engine, seeds, right, count, empty, draw) for draw in range(number)]
        for target in TARGETS:
            rows = [review[target] for review in read]
            out.append(
                {"set": name, "seeds": count, "without": empty, "target": target} | summed(rows, target)
            )
            print(out[-1], flush=True)
    return out


def tested(work: Path, name: str) -> tuple[Engine, list[Seed], Links]:
    """Return the index of a set, its test seeds, and their links."""
    if name == SET:
        return statements(work), seeds_of("test", SEEDS), links("test")
    rank_data.make_index(name, work / name, positions=False)
    judged = rank_data.links(name)["test"]
    right = {(seed, one) for seed, of in judged.qrels.items() for one, grade in of.items() if grade > 0}
    return Engine(work / name), [Seed(q.id, q.text) for q in judged.queries], right


def one_review(
    engine: Engine, seeds: Sequence[Seed], right: Links, count: int, empty: float, draw: int
) -> dict[float, dict[str, Any]]:
    """Return by target the reads and the recall at which the rule stops, None if never, and the oracle's reads."""
    generator = np.random.default_rng([draw, count])
    part = [seeds[i] for i in generator.permutation(len(seeds))[:count].tolist()]
    linked = {
        seed.id for seed, has_link in zip(part, generator.random(len(part)) >= empty, strict=True) if has_link
    }
    gold = {link for link in right if link[0] in linked}
    settings = {target: Settings(unit="pairs", target=target) for target in TARGETS}
    population = Population(engine.collection.rows, part, settings[TARGETS[0]])
    order = MergedOrder(engine, part, settings[TARGETS[0]], population)
    rules = {target: make_rule(settings[target], population.size, order) for target in TARGETS}
    out: dict[float, dict[str, Any]] = {target: {"reads": None, "oracle": None} for target in TARGETS}
    found = 0
    for number in range(1, LONGEST + 1):
        if (candidate := order.next()) is None or all(None not in row.values() for row in out.values()):
            break
        is_link = (candidate.seed, candidate.id) in gold
        found += is_link
        verdict: Verdict = "relevant" if is_link else "not"
        order.tell(Judgement(candidate.seed, candidate.id, verdict, score=candidate.score))
        for target, row in out.items():
            if row["oracle"] is None and found >= math.ceil(target * len(gold)):
                row["oracle"] = number
            if rules[target].update(Read(is_link)).estimated and row["reads"] is None:
                row |= {"reads": number, "recall": found / len(gold)}
    return out


def summed(rows: Sequence[dict[str, Any]], target: float) -> dict[str, Any]:
    """Return how many reviews ended, what they had found by then, and their reads over the oracle's."""
    from scipy.stats import binomtest

    ended = [row for row in rows if row["reads"] is not None]
    if not ended:
        return {"reviews": len(rows), "ended": 0}
    kept = sum(row["recall"] >= target for row in ended)
    times = [row["reads"] / (row["oracle"] or LONGEST) for row in ended]
    interval = binomtest(kept, len(ended)).proportion_ci(method="wilson")
    return {
        "reviews": len(rows), "ended": len(ended), "reached": [kept / len(ended), *map(float, interval)],
        "recall": np.quantile([row["recall"] for row in ended], (0.05, 0.5)).round(4).tolist(),
        "times_oracle": np.quantile(times, (0.5, 0.95)).round(3).tolist(),
        "reads": float(np.median([row["reads"] for row in ended])),
    }  # fmt: skip


@benchmark(seed=0, work=KEPT)
def measured(given: Arguments) -> Results:
    return {"stops": stops(given.work)}
