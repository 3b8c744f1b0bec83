"""What does the learned ranker gain, from how many links, at what cost, and does it transfer?

`python -m benchmarks.rank --work FOLDER` → benchmarks/results/rank.json. Each row has MRR, S@1 and S@5 on test as the
mean of three seeds (one for learning curves and transfer), with a 95 % bootstrap interval of the paired difference in
MRR to the first stage (BM25, or the hybrid, both untuned). Candidates, features and settings were chosen on dev.
The bag is trained on a quarter of the training links of
statements2articles, the ranker on the others; MiniLM saw none. Indexes and models are kept in FOLDER.
"""

import dataclasses
import itertools
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from benchmarks.support import absent, rank_data
from benchmarks.support.harness import run_parts
from benchmarks.support.rank_data import Gathered, Judged
from indexes.dtypes import Float64Array
from linker.engine.building import create
from linker.engine.engine import Engine
from linker.evaluation.first_ranks import mrr
from linker.evaluation.significance import bootstrap
from linker.scoring.ranking import folder, pooled
from linker.scoring.ranking.calibration import LARGE, inputs
from linker.scoring.ranking.candidates import Gatherer, PoolSettings
from linker.scoring.ranking.folder import save
from linker.scoring.ranking.forest import Forest, compact
from linker.scoring.ranking.groups import names_of
from linker.scoring.ranking.ranker import Ranker
from linker.scoring.ranking.searching import RankedSearch
from linker.scoring.ranking.training import grow, lists_of, train

SEEDS = (0, 1, 2)
ROUNDS, PART = 5, 300
CURVE = (150, 300, 1000, 3000)
STATEMENTS, TWEETS = "statements2articles", "tweets2claims"
SETS = (STATEMENTS, TWEETS, "descriptions", "bbc-news")
# small collections of a set by their size; the weight of those in which a share of the texts has a document
FEW_DOCUMENTS = {3: 40, 6: 20, 12: 12, 25: 6, 50: 4, 100: 2, 200: 2, 400: 2, 1000: 2, 2000: 2}
FEW_SHARES = {0.2: 1.0, 0.5: 3.0, 1.0: 1.0}
# inputs of P(none) whose weights differ among few documents; "": the offset
FEW_INPUTS = ("best", "lead", "")
DATED = PoolSettings(date_field="date", direction="after")


def statements(work: Path) -> dict[str, Any]:
    """BM25 alone, and with a bag that learned from a quarter of the links."""
    links = rank_data.links(STATEMENTS)
    rows: dict[str, Any] = {}
    for name, encoder, learned in (
        ("BM25", "none", links["train"]),
        ("bag", str(rank_data.bag(work)), rank_data.rest(links["train"])),
    ):
        rank_data.make_index(STATEMENTS, work / f"{STATEMENTS}-{name}", encoder)
        rows[name] = _case(
            work / f"{STATEMENTS}-{name}", {**links, "train": learned}, PoolSettings(), curve=name == "BM25"
        )
    return rows


def star(work: Path) -> dict[str, Any]:
    """An untrained star over the bag's vectors instead of the bag: it is better on this set's dev split."""
    links, directory = rank_data.links(STATEMENTS), work / f"{STATEMENTS}-star"
    rank_data.make_index(STATEMENTS, directory, str(rank_data.star(work)))
    rest = rank_data.rest(links["train"])
    return {"star": _case(directory, {**links, "train": rest}, PoolSettings(), curve=False)}


def tweets(work: Path) -> dict[str, Any]:
    """BM25 alone and with MiniLM, without and with dates."""
    rows = {}
    for name, encoder in (("BM25", "none"), ("MiniLM", "minilm")):
        rank_data.make_index(TWEETS, work / f"{TWEETS}-{name}", encoder)
        for label, settings in (("", PoolSettings()), (", dates", DATED)):
            links = rank_data.links(TWEETS)
            rows[name + label] = _case(
                work / f"{TWEETS}-{name}", links, settings, curve=name + label == "BM25"
            )
    return rows


def transfer(work: Path) -> dict[str, Any]:
    """Evaluate on each set a ranker trained on the other sets, over BM25's candidates.

    Its trees are measured alone, and blended with BM25.
    """
    sets = {name: _by_words(work, name) for name in SETS}
    rows: dict[str, Any] = {}
    for left_out, (_, test) in sets.items():
        others = [learned for name, (learned, _) in sets.items() if name != left_out]
        ranker, _ = pooled.learn([(part.pool, part.relevant) for part in others])
        alone = dataclasses.replace(ranker, blend=0.0)
        rows[left_out] = _row([ranker], test, test.hybrid) | {"alone": _row([alone], test, test.hybrid)}
    return rows


def ship(work: Path, text: str | None = None) -> dict[str, Any]:
    """Train the ranker that ships with linker on all four sets, and write it into the package."""
    parts = [_by_words(work, name)[0] for name in SETS]
    about = {"sets": list(SETS), "queries": sum(len(part.relevant) for part in parts), "language": "english"}
    ranker, text = pooled.learn([(part.pool, part.relevant) for part in parts], about=about, text=text)
    save(ranker, text, pooled.FOLDER)
    pooled.load.cache_clear()
    few(work)
    saved = folder.load(pooled.FOLDER)
    return {"ranker": saved.fingerprint, **about, "kib": round(len(text) / 1024)}


def calibrate(work: Path) -> None:
    """Fit only the probabilities of the ranker that ships with linker again; its trees stay as they are."""
    ship(work, (pooled.FOLDER / folder.TREES).read_text())


def few(work: Path) -> None:
    """Fit what few documents change in the probabilities of the ranker that ships with linker, and write it."""
    ranker, parts = pooled.load(), []
    for seed, name in enumerate(SETS):
        collections = absent.SmallCollections(name, "train", seed)
        for (size, count), (share, times) in itertools.product(FEW_DOCUMENTS.items(), FEW_SHARES.items()):
            some = [_of_small(work, ranker, one) for one in collections.draw(size, share, count)]
            if not some:  # the set is too small
                continue
            x, none = (np.concatenate(column) for column in zip(*some, strict=True))
            constants = np.full((2, len(x)), [[math.log(LARGE / size)], [times / len(x)]])
            parts.append((x, none, *constants))
    x, none, smaller, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    calibration = ranker.calibration
    z = np.column_stack([(x - calibration.centre) / calibration.scale, np.ones(len(x))])
    logits = z @ np.array(calibration.weights)
    free = np.array([name in FEW_INPUTS for name in (*calibration.inputs, "")])

    def loss(change: Float64Array) -> tuple[float, Float64Array]:
        changed = logits + smaller * (z[:, free] @ change)
        pull = weight * smaller * (expit(changed) - none)
        return float(weight @ (np.logaddexp(0, changed) - none * changed)), pull @ z[:, free]

    changes = np.zeros(len(free))
    changes[free] = minimize(loss, changes[free], jac=True, method="L-BFGS-B").x.round(4)
    calibration = dataclasses.replace(calibration, few=tuple(changes.tolist()))
    text = (pooled.FOLDER / folder.TREES).read_text()
    save(dataclasses.replace(ranker, calibration=calibration), text, pooled.FOLDER)


def _of_small(work: Path, ranker: Ranker, small: absent.SmallCollection) -> tuple[Float64Array, Float64Array]:
    """Return the inputs of P(none) of texts that have candidates [n, f], and whether they have no document [n]."""
    with tempfile.TemporaryDirectory(dir=work) as directory:
        create(Path(directory) / "index", positions=True)
        engine = Engine(Path(directory) / "index")
        engine.add(small.documents)
        pool = Gatherer(engine.collection, PoolSettings(), None).gather(small.texts)
    scores, valid = ranker.scores(pool), pool.valid
    x = inputs(np.where(valid, scores, 0), valid, pool.features, pool.names, ranker.calibration.inputs)
    some = valid.any(axis=1)
    return x[some], (np.arange(len(x)) >= small.linked)[some].astype(float)


def _by_words(work: Path, name: str, most: int = 500) -> tuple[Gathered, Gathered]:
    """Return BM25's candidates for at most `most` training queries of a set, and for all its test queries."""
    directory, links = work / f"{name}-BM25", rank_data.links(name)
    rank_data.make_index(name, directory)
    test = rank_data.gather(directory, links["test"], PoolSettings(), encoder=False)
    if "train" not in links:
        return test.sample(most), test
    chosen = np.random.default_rng(0).permutation(len(links["train"].queries))[:most]
    learned = Judged([links["train"].queries[i] for i in chosen], links["train"].qrels)
    return rank_data.gather(directory, learned, PoolSettings(), encoder=False), test


def cost(work: Path) -> dict[str, Any]:
    """CPU time per query and for features, size and build time of the forward index; articles of 780 words.

    Times are the minimum of ROUNDS rounds, each over PART queries that were not run before.
    """
    directory, plain = work / f"{STATEMENTS}-cost", work / f"{STATEMENTS}-plain"
    built = rank_data.make_index(STATEMENTS, directory)
    without = rank_data.make_index(STATEMENTS, plain, positions=False)
    links = rank_data.links(STATEMENTS)
    texts = [q.text for q in links["test"].queries]
    parts = [texts[start : start + PART] for start in range(0, ROUNDS * PART, PART)]
    learned = rank_data.gather(work / f"{STATEMENTS}-bag", links["dev"], PoolSettings(), encoder=True)
    engine = Engine(work / f"{STATEMENTS}-bag")
    encoder = engine.collection.manifest.encoder
    assert encoder is not None
    ranker = dataclasses.replace(_trained(learned, PoolSettings(), 0), encoder=encoder.fingerprint)
    search = RankedSearch(engine.collection, ranker, engine.embed)
    forward, rows = engine.collection.forward, np.arange(0, 19_000, 950)
    words = [forward.words(text) for text in texts[-PART:]]
    search.search(texts[-PART:], 10)
    runs: dict[str, Callable[[list[str]], object]] = {
        "describe": lambda part: [forward.describe(w, rows) for w in words],
        "query": lambda part: [search.search([text], 10) for text in part],
        "batch": lambda part: search.search(part, 10),
    }
    seconds = {name: min(_seconds(run, part) for part in parts) for name, run in runs.items()}
    return {
        "candidates_per_cpu_second": round(len(rows) * PART / seconds["describe"]),
        "ms_per_query": {name: round(seconds[name] / PART * 1e3, 2) for name in ("query", "batch")},
        "trees": len(ranker.forest.trees),
        "index": {"with positions": built, "without": without},
        "load": round(os.getloadavg()[0], 1),
    }


def _seconds(run: Callable[[list[str]], object], part: list[str]) -> float:
    start = time.process_time()
    run(part)
    return time.process_time() - start


def _case(directory: Path, links: dict[str, Judged], settings: PoolSettings, curve: bool) -> dict[str, Any]:
    """Return the row of an index (its encoder, if any, is used) and its learning curve."""
    encoder = Engine(directory).collection.manifest.encoder is not None
    found = {s: rank_data.gather(directory, links[s], settings, encoder=encoder) for s in rank_data.SPLITS}
    rankers = _seeds(found["train"], settings)
    row: dict[str, Any] = {
        "candidates": {s: round(float(g.relevant.any(axis=1).mean()), 4) for s, g in found.items()},
        "links": len(found["train"].relevant),
        **{split: _row(rankers, found[split], found[split].hybrid) for split in ("dev", "test")},
    }
    for count in [n for n in CURVE if curve and n < row["links"]]:
        part = found["train"].sample(count)
        few = [_trained(part, settings, SEEDS[0])]
        row.setdefault("curve", {})[str(count)] = _row(few, found["test"], found["test"].hybrid)
    return row


def _trained(part: Gathered, settings: PoolSettings, seed: int) -> Ranker:
    return train(part.pool, part.relevant, settings, seed=seed).ranker


def _seeds(part: Gathered, settings: PoolSettings) -> list[Ranker]:
    """Return a ranker per seed; the first ranker's number of trees and calibration are used."""
    first = _trained(part, settings, SEEDS[0])
    lists, names = lists_of(part.pool, part.relevant), names_of(part.pool.names)
    texts = [compact(grow(lists, names, first.about["trees"], seed)) for seed in SEEDS[1:]]
    return [first, *(dataclasses.replace(first, forest=Forest.read(text)) for text in texts)]


def _row(rankers: list[Ranker], part: Gathered, before: Float64Array) -> dict[str, Any]:
    """Return the mean measures of rankers, each one's MRR, and their lead in MRR over `before` [n]."""
    found = np.array([_reciprocal(ranker, part) for ranker in rankers])
    low, high = bootstrap(found.mean(axis=0) - before)
    return {
        "mrr": round(float(found.mean()), 4),
        "s1": round(float((found == 1).mean()), 4),
        "s5": round(float((found >= 0.2).mean()), 4),
        "seeds": [round(float(f.mean()), 4) for f in found],
        "before": round(float(before.mean()), 4),
        "lead": [round(float(found.mean() - before.mean()), 4), round(low, 4), round(high, 4)],
    }


def _reciprocal(ranker: Ranker, part: Gathered) -> Float64Array:
    return mrr(ranker.scores(part.pool), part.relevant, part.pool.valid)


if __name__ == "__main__":
    run_parts(
        {part.__name__: part for part in (tweets, statements, star, transfer, cost, ship, calibrate, few)},
        "calibrate",
        "few",
        seed=SEEDS[0],
    )
