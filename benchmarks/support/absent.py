"""P(link) if some texts have no document.

`linked` asks `link` about all texts of test at once, `batches` about a few at a time, over an index that lacks the
documents of the orphans; their siblings stay. Nonsense consists of words drawn from the texts of a set.
"""

import itertools
import json
import math
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.support import rank_data
from benchmarks.support.rank_data import Judged
from indexes.dtypes import BoolArray, Float64Array
from indexes.interface import Document
from linker.cli.commands.linking import link
from linker.engine.building import create
from linker.engine.engine import Engine

ORPHANS = (0.0, 0.5, 0.9)  # shares of queries without a match
NONSENSE = 256  # texts of random words
SIZES = (1, 5, 20, 50)  # texts per batch
LINKS = 1000  # training links at most
SURE, LIKELY = 0.9, 0.5
SETS = ("statements2articles", "tweets2claims", "descriptions", "bbc-news")
FEW_DOCUMENTS = (6, 12, 25, 50, 100, 300, 1000, 3000)
FEW_TEXTS = 48  # texts of each set in small collections of a size, at least
MOST_TEXTS = 150  # texts of one collection
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


@dataclass(frozen=True)
class SmallCollection:
    """A few documents and as many texts (up to MOST_TEXTS): text n belongs to document n if n < `linked`."""

    documents: list[Document]
    texts: list[str]
    linked: int


class SmallCollections:
    """Draws small collections from a split of a set; sets without splits are halved by document."""

    def __init__(self, name: str, split: str, seed: int) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        judged = rank_data.links(name)
        half = judged[split if "train" in judged else "test"]
        self._random, texts = np.random.default_rng(seed), dict[str, list[str]]()
        for query in half.queries:
            document = next(iter(half.qrels[query.id]))
            if "train" in judged or zlib.crc32(document.encode()) % 2 == (split == "test"):
                texts.setdefault(document, []).append(query.text)
        self._documents = list(rank_data.documents_for(name))
        self._texts = {n: texts[d.id] for n, d in enumerate(self._documents) if d.id in texts}
        self._words = TfidfVectorizer(sublinear_tf=True).fit_transform([d.full_text for d in self._documents])

    def draw(self, size: int, share: float, count: int) -> Iterator[SmallCollection]:
        """Yield `count` collections of which a `share` of the texts has a document; none if the split is too small.

        Every other one is on one subject: the documents, missing ones included, are the nearest to a random one.
        """
        total = min(size, MOST_TEXTS, len(self._texts))
        linked = math.ceil(share * total)
        for number in range(count if size + total - linked <= len(self._documents) else 0):
            order = self._random.permutation(len(self._documents))
            if number % 2:
                near = (self._words @ self._words[[order[0]]].T).toarray()[:, 0]
                order = np.argsort(-near, kind="stable")
            nearest = order.tolist()
            with_texts = self._random.permutation([n for n in nearest if n in self._texts][:total]).tolist()
            others = [n for n in nearest if n not in with_texts][: size - linked]
            drawn = [self._documents[n] for n in (*with_texts[:linked], *others)]
            texts = [str(self._random.choice(self._texts[n])) for n in with_texts]
            yield SmallCollection(drawn, texts, linked)


def few_documents(work: Path, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return the results of `link` on small collections of SETS' test halves, by size and share of orphans."""
    random, sets = np.random.default_rng(seed), [SmallCollections(name, "test", seed) for name in SETS]
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for size, orphans in itertools.product(FEW_DOCUMENTS, ORPHANS[:2]):
        count = max(1, FEW_TEXTS // size)
        found = [_linked(work, one) for each in sets for one in each.draw(size, 1 - orphans, count)]
        p, right = (np.concatenate(column) for column in zip(*found, strict=True))
        likely, sure = p >= LIKELY, p >= SURE
        rows.setdefault(str(size), {})[f"{orphans:g}"] = {
            "texts": len(p),
            "error": round(calibration_error(p, right), 4),
            "chance": round(by_chance(p, random), 4),
            "first": round(float(right.mean()), 4),
            "recall": round(float(likely[right].mean()), 4),
            **{
                f"{name}_precision": round(float(right[those].mean()), 4) if those.any() else 1.0
                for name, those in (("likely", likely), ("sure", sure))
            },
            "sure": int(sure.sum()),
        }
    return rows


def _linked(work: Path, small: SmallCollection) -> tuple[Float64Array, BoolArray]:
    """Return P(link) of each text's first document, and whether it is right."""
    directory = work / "few-documents"
    shutil.rmtree(directory, ignore_errors=True)
    create(directory, positions=True)
    Engine(directory).add(small.documents)
    texts = {str(number): text for number, text in enumerate(small.texts)}
    firsts = dict.fromkeys(texts, ("", 0.0)) | _firsts(work, directory, texts, [])
    right = [
        int(number) < small.linked and document == small.documents[int(number)].id
        for number, (document, _) in firsts.items()
    ]
    return np.array([p for _, p in firsts.values()]), np.array(right)
