"""P(link) if some texts have no document.

`linked` asks `link` about all texts of test at once, `batches` about a few at a time, over an index that lacks the
documents of the orphans; their siblings stay. Nonsense consists of words drawn from the texts of a set.
"""

import json
import shutil
from pathlib import Path

import numpy as np

from benchmarks.support import rank_data
from benchmarks.support.rank_data import Judged
from indexes.dtypes import BoolArray, Float64Array
from linker.cli.commands.linking import link
from linker.engine.building import create
from linker.engine.engine import Engine

ORPHANS = (0.0, 0.5, 0.9)  # shares of queries without a match
NONSENSE = 256  # texts of random words
SIZES = (1, 5, 20, 50)  # texts per batch
LINKS = 1000  # training links at most
SURE = 0.9
CHANCES = 200  # number of simulations of the calibration error that chance alone causes


def linked(work: Path, name: str, seed: int, taught: bool) -> dict[str, dict[str, float]]:
    """Return the results of `link` on test for each share of orphans, with up to LINKS training links if `taught`."""
    links, random = rank_data.links(name), np.random.default_rng(seed)
    train, test = links["train"], links["test"]
    some = [train.queries[i] for i in random.permutation(len(train.queries))[:LINKS]]
    pairs = [(q.id, document) for q in some for document in train.qrels[q.id]]
    known = work / f"{name}-known.qrels"
    known.write_text("".join(f"{one} 0 {other} 1\n" for one, other in pairs))
    queries = {q.id: q.text for q in test.queries}
    nonsense = {f"nonsense-{i}": text for i, text in enumerate(_nonsense(test, random))}
    files, others = ([known], {q.id: q.text for q in some}) if taught else ([], {})
    row: dict[str, dict[str, float]] = {}
    for share, (directory, missing) in _indexes(work, name, test, seed).items():
        firsts = dict.fromkeys(queries, ("", 0.0)) | _firsts(work, directory, others | queries, files)
        row[f"{share:g}"] = _figures({id_: firsts[id_] for id_ in queries}, test, missing, random)
        if not share:
            nothing = _firsts(work, directory, others | nonsense, files)
            row["nonsense"] = {"median": round(float(np.median([nothing[i][1] for i in nonsense])), 4)}
    return row


def batches(work: Path, name: str, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return the results of `link` on test without known links, by texts per batch and share of orphans."""
    test, random = rank_data.links(name)["test"], np.random.default_rng(seed)
    queries = {q.id: q.text for q in test.queries}
    nonsense = {f"nonsense-{i}": text for i, text in enumerate(_nonsense(test, random))}
    rows: dict[str, dict[str, dict[str, float]]] = {str(size): {} for size in SIZES}
    for share, (directory, missing) in _indexes(work, name, test, seed).items():
        for size in SIZES:
            row, firsts = rows[str(size)], _in_batches(work, directory, queries, size, random)
            row[f"{share:g}"] = _figures(firsts, test, missing, random)
            if not share:
                nothing = _in_batches(work, directory, nonsense, size, random)
                row["nonsense"] = {"median": round(float(np.median([p for _, p in nothing.values()])), 4)}
    return rows


def _in_batches(
    work: Path, directory: Path, texts: dict[str, str], size: int, random: np.random.Generator
) -> dict[str, tuple[str, float]]:
    """Return `_firsts` of all texts, in random batches of `size`; the last ones are left out if they are fewer."""
    ids = [list(texts)[i] for i in random.permutation(len(texts)).tolist()]
    parts = [ids[i : i + size] for i in range(0, len(ids) - size + 1, size)]
    found: dict[str, tuple[str, float]] = {}
    for part in parts:
        found |= dict.fromkeys(part, ("", 0.0)) | _firsts(
            work, directory, {id_: texts[id_] for id_ in part}, []
        )
    return found


def _indexes(work: Path, name: str, test: Judged, seed: int) -> dict[float, tuple[Path, set[str]]]:
    """Return, for each share in ORPHANS, an index that lacks this share of test's documents, and those left out."""
    right = sorted({document for q in test.queries for document in test.qrels[q.id]})
    order = np.random.default_rng(seed).permutation(len(right)).tolist()
    indexes = {}
    for share in ORPHANS:
        directory = work / f"{name}-{seed}-{share:g}"
        missing = {right[i] for i in order[: round(share * len(right))]}
        shutil.rmtree(directory, ignore_errors=True)  # an earlier version may have drawn different documents
        create(directory, positions=True)
        Engine(directory).add([d for d in rank_data.documents_for(name) if d.id not in missing])
        indexes[share] = directory, missing
    return indexes


def _figures(
    firsts: dict[str, tuple[str, float]], test: Judged, missing: set[str], random: np.random.Generator
) -> dict[str, float]:
    """Return the figures of P(link) of the first documents `found`."""
    right = {id_: {*test.qrels[id_]} - missing for id_ in firsts}
    probabilities = np.array([p for _, p in firsts.values()])
    correct = np.array([document in right[id_] for id_, (document, _) in firsts.items()])
    sure = probabilities >= SURE
    return {
        "orphans": round(float(np.mean([not right[id_] for id_ in firsts])), 4),
        "error": round(calibration_error(probabilities, correct), 4),
        "chance": round(by_chance(probabilities, random), 4),
        "sure": int(sure.sum()),
        "precision": round(float(correct[sure].mean()), 4) if sure.any() else 1.0,
    }


def _firsts(
    work: Path, directory: Path, texts: dict[str, str], known: list[Path]
) -> dict[str, tuple[str, float]]:
    """Return the first document of each linked text, and its P(link)."""
    path = work / "texts.jsonl"
    path.write_text("".join(json.dumps({"id": id_, "text": text}) + "\n" for id_, text in texts.items()))
    # with a file for the run, the words and passages that explain each link are not looked for
    out = work / "links.run"
    run = link(path, directory, out=out, k=1, train=known, min_probability=0, languages="en-en").run
    return {id_: next(iter(of.items())) for id_, of in run.items()}


def _nonsense(judged: Judged, random: np.random.Generator) -> list[str]:
    """Return NONSENSE texts, each as long as some judged query, of words drawn from all judged queries."""
    words = [word for query in judged.queries for word in query.text.split()]
    chosen = random.choice(len(judged.queries), NONSENSE)
    return [" ".join(random.choice(words, max(3, len(judged.queries[i].text.split())))) for i in chosen]


def by_chance(probabilities: Float64Array, random: np.random.Generator) -> float:
    """Return the mean calibration error if every P(link) [n] were right."""
    truths = (random.random(len(probabilities)) < probabilities for _ in range(CHANCES))
    return float(np.mean([calibration_error(probabilities, truth) for truth in truths]))


def calibration_error(probabilities: Float64Array, right: BoolArray) -> float:
    """Return the mean distance between P(link) [n] and its frequency of being right, in ten equal-width bins."""
    bins = np.minimum((probabilities * 10).astype(int), 9)
    return float(np.abs(np.bincount(bins, probabilities - right, 10)).sum() / max(len(probabilities), 1))
