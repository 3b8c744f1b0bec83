"""The order of pairs of many seeds: merged by z, by rank, or by raw score, as `linker find` used to pool them.

Seeds are articles, the BM25 index holds the statements that they are about (`statements2articles`). The default
is chosen on articles linked in train.tsv and reported on those of test.tsv.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import rank_data
from benchmarks.support.common import in_child, shared_data
from indexes.interface import Document
from linker.corpora import read_queries
from linker.engine import Engine, building
from linker.review.interface import Seed
from linker.review.orders import MergedOrder
from linker.review.population import Population
from linker.review.settings import OrderName, Settings

SEEDS, DEPTH, FOUND, MOST = 3000, 1000, (1, 100, 1000), 100_000
SET = "statements2articles"
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
    chosen = np.random.default_rng(0).permutation(len(found))[:count]
    return [found[i] for i in chosen.tolist()]


def statements(work: Path) -> Engine:
    """Return an engine over all statements."""
    directory = work / "statements"
    if directory.exists():
        return Engine(directory)
    building.create(directory, encoder="none")
    engine = Engine(directory)
    engine.add(Document(q.id, q.text) for q in read_queries(shared_data() / SET / "queries.jsonl.gz"))
    return engine


def merged(work: Path, split: str, count: int, order: OrderName) -> Iterator[tuple[str, str]]:
    """Yield seeds and documents as a review of pairs shows them."""
    engine, seeds, settings = statements(work), seeds_of(split, count), Settings(unit="pairs", order=order)
    merging = MergedOrder(engine, seeds, settings, Population(engine.collection.rows, seeds, settings))
    while candidate := merging.next():
        yield candidate.seed, candidate.id


def pooled(work: Path, split: str, count: int) -> Iterator[tuple[str, str]]:
    """Yield pairs by raw score, from each seed's first DEPTH, as `linker find` used to."""
    seeds = seeds_of(split, count)
    hits = statements(work).search([f"{s.title}\n{s.text}" for s in seeds], DEPTH).hits
    every = [
        (-score, s.id, id_)
        for s, h in zip(seeds, hits, strict=True)
        for id_, score in zip(h.ids, h.scores, strict=True)
    ]
    yield from ((seed, id_) for _, seed, id_ in sorted(every))


def reads(order: Iterable[tuple[str, str]], right: Links) -> dict[str, int]:
    """Return how many pairs are read until this many relevant pairs are found."""
    found, out = 0, dict[str, int]()
    for number, pair in enumerate(itertools.islice(order, MOST), 1):
        found += pair in right
        if found in FOUND and pair in right:
            out[f"reads to {found}"] = number
            if found == FOUND[-1]:
                break
    return out


def by(work: Path, split: str, count: int, order: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs in one of the orders."""
    return pooled(work, split, count) if order == "raw score" else merged(work, split, count, order)  # type: ignore[arg-type]  # z or rank


def first_thousand(work: Path, split: str, count: int, order: str) -> None:
    """Read until a thousand relevant pairs are found; `in_child` measures this call."""
    reads(by(work, split, count, order), links(split))


def pairs(work: Path) -> dict[str, Any]:
    """Return the reads of every order on either split, and their memory and CPU seconds on the larger one."""
    statements(work)
    out: dict[str, Any] = {}
    for split in ("train", "test"):
        right, count = links(split), len(seeds_of(split, SEEDS))
        out[split] = {"seeds": count} | {
            order: reads(by(work, split, SEEDS, order), right) for order in ("z", "rank", "raw score")
        }
    for order in ("z", "rank", "raw score"):
        cost = in_child(first_thousand, (work, "train", SEEDS, order))
        out["train"][order] |= {"peak_mib": round(cost.peak_mib), "cpu_s": round(cost.cpu_s, 1)}
    return out
