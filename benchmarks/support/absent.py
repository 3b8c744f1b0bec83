"""P(link) of a ranker if some queries have no match.

The document of these queries is removed from the candidates, and the next one moves up. `nonsense` queries consist of
words drawn from the queries of a set. P(link) is estimated for each query alone, and for batches of TOGETHER queries.
`linked` asks `link` about all texts of test at once, over an index that lacks the documents of the orphans.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from benchmarks.support import rank_data
from benchmarks.support.rank_data import Gathered, Judged
from indexes.dtypes import BoolArray, Float64Array
from linker.cli.commands.linking import link
from linker.engine.building import create
from linker.engine.engine import Engine
from linker.scoring.ranking.candidates import Gatherer, Pool, PoolSettings
from linker.scoring.ranking.learning import gathered
from linker.scoring.ranking.ranker import Ranker
from linker.scoring.ranking.training import train

ORPHANS = (0.0, 0.5, 0.9)  # shares of queries without a match
TOGETHER = 256  # queries per batch
LINKS = 1000  # maximum number of training links
SURE = 0.9
CHANCES = 200  # number of simulations of the calibration error by chance
CERTAIN = 0.5  # the minimum P(link) for a watch to accept a link


def figures(work: Path, name: str, seed: int) -> dict[str, float]:
    """Return the figures of a ranker on test or, if there is no training split, on a random half."""
    directory, links = work / f"{name}-BM25", rank_data.links(name)
    rank_data.make_index(name, directory)
    deeper = PoolSettings(bm25=PoolSettings().bm25 + 1)
    test = rank_data.gather(directory, links["test"], deeper, encoder=False)
    random = np.random.default_rng(seed)
    if "train" in links:
        queries, qrels = links["train"].queries, links["train"].qrels
        few = Judged([queries[i] for i in random.permutation(len(queries))[:LINKS]], qrels)
        learn = rank_data.gather(directory, few, deeper, encoder=False)
    else:
        half = random.permutation(len(test.relevant)) % 2 == 0
        learn, test = _part(test, half).sample(LINKS), _part(test, ~half)
    learn = _without(learn, np.zeros(len(learn.relevant), dtype=bool))
    ranker = train(learn.pool, learn.relevant, PoolSettings(), seed=seed).ranker
    row: dict[str, float] = {"queries": len(test.relevant)}
    for share in ORPHANS:
        part = _without(test, random.random(len(test.relevant)) < share)
        for how, size in (("alone", 1), ("together", TOGETHER)):
            said, right = first(ranker, part, size)
            kept = said >= CERTAIN
            row |= {
                f"error_{share:g}_{how}": calibration_error(said, right),
                f"precision_{share:g}_{how}": float(right[kept].mean()) if kept.any() else 1.0,
                f"kept_{share:g}_{how}": float(kept.mean()),
            }
    made = gathered(
        Gatherer(Engine(directory).collection, PoolSettings(), None), _nonsense(links["test"], random)
    )
    nothing = Gathered(made, np.zeros(made.rows.shape, dtype=bool), np.zeros(len(made.rows)))
    for how, size in (("alone", 1), ("together", TOGETHER)):
        row[f"nonsense_{how}"] = float(np.median(first(ranker, nothing, size)[0]))
    return {key: round(value, 4) for key, value in row.items()}


def linked(work: Path, name: str, seed: int, taught: bool) -> dict[str, dict[str, float]]:
    """Return the figures of `link` on test by the share of orphans; `taught`: with LINKS training links, or none."""
    links, random = rank_data.links(name), np.random.default_rng(seed)
    train, test = links["train"], links["test"]
    some = [train.queries[i] for i in random.permutation(len(train.queries))[:LINKS]]
    pairs = [(q.id, document) for q in some for document in train.qrels[q.id]]
    known = work / f"{name}-known.qrels"
    known.write_text("".join(f"{one} 0 {other} 1\n" for one, other in pairs))
    asked = {q.id: q.text for q in test.queries}
    made = {f"nonsense-{i}": text for i, text in enumerate(_nonsense(test, random))}
    right = sorted({document for id_ in asked for document in test.qrels[id_]})
    order = random.permutation(len(right)).tolist()
    files, others = ([known], {q.id: q.text for q in some}) if taught else ([], {})
    row: dict[str, dict[str, float]] = {}
    for share in ORPHANS:
        directory, gone = (
            work / f"{name}-{seed}-{share:g}",
            {right[i] for i in order[: round(share * len(right))]},
        )
        if not (directory / "manifest.json").exists():
            create(directory, positions=True)
            Engine(directory).add([d for d in rank_data.documents_for(name) if d.id not in gone])
        found = _firsts(work, directory, others | asked, files)
        said = np.array([found.get(id_, ("", 0.0))[1] for id_ in asked])
        good = np.array([found.get(id_, ("", 0.0))[0] in {*test.qrels[id_]} - gone for id_ in asked])
        sure = said >= SURE
        row[f"{share:g}"] = {
            "orphans": round(float(np.mean([{*test.qrels[id_]} <= gone for id_ in asked])), 4),
            "error": round(calibration_error(said, good), 4),
            "chance": round(by_chance(said, random), 4),
            "sure": int(sure.sum()),
            "precision": round(float(good[sure].mean()), 4) if sure.any() else 1.0,
        }
        if not share:
            nothing = _firsts(work, directory, others | made, files)
            row["nonsense"] = {"median": round(float(np.median([nothing[i][1] for i in made])), 4)}
    return row


def _firsts(
    work: Path, directory: Path, texts: dict[str, str], known: list[Path]
) -> dict[str, tuple[str, float]]:
    """Return the first document of each linked text, and its P(link)."""
    path = work / "texts.jsonl"
    path.write_text("".join(json.dumps({"id": id_, "text": text}) + "\n" for id_, text in texts.items()))
    run = link(path, directory, k=1, train=known, min_probability=0, languages="en-en").run
    return {id_: next(iter(of.items())) for id_, of in run.items()}


def _part(part: Gathered, chosen: BoolArray) -> Gathered:
    pool = Pool(part.pool.rows[chosen], part.pool.features[chosen], part.pool.names)
    return Gathered(pool, part.relevant[chosen], part.hybrid[chosen])


def _without(part: Gathered, orphans: BoolArray) -> Gathered:
    """Return all candidates but the last; queries marked in `orphans` [n] lose their relevant ones first."""
    gone = part.relevant & orphans[:, None]
    order = np.argsort(gone, axis=1, kind="stable")[:, :-1]
    rows = np.take_along_axis(np.where(gone, -1, part.pool.rows), order, 1)
    features = np.take_along_axis(part.pool.features, order[:, :, None], 1)
    return Gathered(
        Pool(rows, features, part.pool.names),
        np.take_along_axis(part.relevant & ~gone, order, 1),
        part.hybrid,
    )


def first(ranker: Ranker, part: Gathered, size: int) -> tuple[Float64Array, BoolArray]:
    """Return P(link) of the first candidates [n] and whether they are right, with `size` queries per batch."""
    ranked = ranker.rank(part.pool)
    right = (part.relevant & (part.pool.rows == ranked.rows[:, :1])).any(axis=1)
    none = np.concatenate(
        [ranker.calibration.together(ranked.none[i : i + size]) for i in range(0, len(right), size)]
    )
    times = np.divide(1 - none, 1 - ranked.none, out=np.ones(len(none)), where=ranked.none < 1)
    return ranked.links[:, 0] * times, right


def _nonsense(judged: Judged, random: np.random.Generator) -> list[str]:
    """Return TOGETHER queries, each as long as some judged query, of words drawn from all judged queries."""
    words = [word for query in judged.queries for word in query.text.split()]
    chosen = random.choice(len(judged.queries), TOGETHER)
    return [" ".join(random.choice(words, max(3, len(judged.queries[i].text.split())))) for i in chosen]


def by_chance(said: Float64Array, random: np.random.Generator) -> float:
    """Return the mean calibration error if every P(link) [n] were right."""
    return float(np.mean([calibration_error(said, random.random(len(said)) < said) for _ in range(CHANCES)]))


def calibration_error(said: Float64Array, right: BoolArray) -> float:
    """Return the mean distance between P(link) [n] and its frequency of being right, in ten equal-width bins."""
    bins = np.minimum((said * 10).astype(int), 9)
    return float(np.abs(np.bincount(bins, said - right, 10)).sum() / max(len(said), 1))
