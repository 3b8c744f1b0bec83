"""Corpora whose documents have a story or a category, and measures for groupings of them."""

import functools
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.support import rank_data
from benchmarks.support.common import records, shared_data
from indexes.dtypes import BoolArray, Float64Array, Int64Array
from indexes.interface import Document
from linker.evaluation.reading.trec import read_qrels

CLAIMS, NEWSWIRE, PAGES = 2000, 1500, 800
# SemEval's scores (1: most similar): the maximum for the same story, the minimum for different ones.
SAME, DIFFERENT = 2.0, 3.0
# STSb's scores (5: the same): a paraphrase has more than the first, a different sentence less than the second.
PARAPHRASE, APART = 4.0, 3.0


@dataclass(frozen=True, eq=False)
class Grouped:
    """Documents and the true group of each, int64 [n]; `judged` bool [n]: documents whose group is certain.

    Groups are stories or, if they are `coarse`, categories.
    """

    documents: list[Document]
    gold: Int64Array
    judged: BoolArray
    coarse: bool = False

    def half(self, seed: int = 0) -> BoolArray:
        """Return which documents are in the first half, bool [n], drawn at random; each story lies in one half."""
        rng = np.random.default_rng(seed)
        if self.coarse:
            return np.asarray(rng.permutation(len(self.gold)) % 2 == 0)
        return np.asarray((rng.permutation(int(self.gold.max()) + 1) % 2 == 0)[self.gold])


def _made(
    found: Sequence[tuple[Document, str]], judged: Sequence[bool] | None = None, coarse: bool = False
) -> Grouped:
    numbers = np.unique(np.array([group for _, group in found]), return_inverse=True)[1]
    known = np.array(judged if judged is not None else [True] * len(found), bool)
    return Grouped([document for document, _ in found], numbers, known, coarse)


def tweets(splits: Sequence[str] = ("train", "dev", "test"), claims: bool = False) -> Grouped:
    """Return tweets by the claim that they repeat; with `claims`, also their claims and others."""
    parts = rank_data.links("tweets2claims")
    found = [(Document(q.id, q.text), min(parts[s].qrels[q.id])) for s in splits for q in parts[s].queries]
    if claims:
        claimed = {claim for _, claim in found}
        every = rank_data.documents_for("tweets2claims")
        others = [d for d in every if d.id not in claimed][:CLAIMS]
        found += [(d, d.id) for d in (*(d for d in every if d.id in claimed), *others)]
    return _made(found)


@functools.cache
def articles() -> list[Document]:
    """Return the articles of `statements2articles`."""
    return rank_data.documents_for("statements2articles")


def statements(split: str, count: int, others: int = 0) -> Grouped:
    """Return statements with their articles, and `others`, which may have the same subject and are not judged."""
    part = rank_data.links("statements2articles")[split]
    queries = part.queries[:count]
    story = {min(part.qrels[q.id]): q.id for q in queries}
    found = [(Document(q.id, q.text), q.id) for q in queries]
    found += [(d, story[d.id]) for d in articles() if d.id in story]
    more = [(d, d.id) for d in articles() if d.id not in story][:others]
    return _made([*found, *more], [True] * len(found) + [False] * len(more))


def news() -> Grouped:
    """Return English news with human judgements of pairs; pairs judged to be the same story are joined."""
    pairs = [
        r for r in records(shared_data() / "news-similarity" / "train.jsonl.gz")
        if r["lang1"] == r["lang2"] == "en" and not SAME < r["overall"] < DIFFERENT
    ]  # fmt: skip
    found = []
    for r in pairs:
        one, other = r["_id"].split("_")[:2]
        same = r["overall"] <= SAME
        found += [
            (Document(f"{r['_id']}/1", r["text1"]), one),
            (Document(f"{r['_id']}/2", r["text2"]), one if same else other),
        ]
    return _made(found)


def pages(others: bool = False) -> Grouped:
    """Return some English manual pages, each with its translations into five languages, if it has any; or `others`."""
    shared = shared_data() / "linked-pages"
    every = {
        d.id: d for path in sorted((shared / "masked").glob("*.gz")) for d in rank_data.documents_of(path)
    }
    of: dict[str, list[str]] = {id_: [id_] for id_ in every if id_.startswith("en")}
    for path in sorted((shared / "qrels").glob("*.txt")):
        for source, targets in read_qrels(path).items():
            for target in targets:
                of[target].append(source)
    found: list[tuple[Document, str]] = []
    order = np.random.default_rng(0).permutation(sorted(of)).tolist()
    for english in reversed(order) if others else order:
        if len(found) < PAGES:
            found += [(every[id_], english) for id_ in of[english]]
    return _made(found)


def sentences() -> Grouped:
    """Return half of the translations of some sentences (STSb, dev) and their paraphrases into five languages.

    Paraphrases are of one story, other sentences of different ones.
    """
    shared = shared_data() / "sts"
    rows = {
        name: list(records(shared / f"stsb-{name}-dev.jsonl.gz")) for name in ("en", "de", "fr", "ru", "zh")
    }
    rng, found = np.random.default_rng(0), []
    known: set[str] = set()
    for i in rng.permutation(len(rows["en"])).tolist():
        texts, score = {rows["en"][i]["text1"], rows["en"][i]["text2"]}, rows["en"][i]["score"]
        if len(texts) < 2 or known & texts or not (score > PARAPHRASE or score < APART):
            continue
        known |= texts
        for name, side in itertools.product(rows, ("text1", "text2")):
            if rng.random() < 0.5:
                document = Document(f"{name}-{i}-{side}", rows[name][i][side])
                found.append((document, str(i) if score > PARAPHRASE else f"{i}-{side}"))
    return _made(found)


def categories() -> Grouped:
    """Return BBC news by category, the coarse level."""
    documents = rank_data.documents_of(shared_data() / "bbc-news" / "corpus.jsonl.gz")
    return _made([(d, str(d.metadata["category"])) for d in documents], coarse=True)


def topics() -> Grouped:
    """Return a random sample of newswire articles with exactly one topic each, by topic, the coarse level."""
    of: dict[str, list[str]] = {}
    for path in sorted((shared_data() / "news-topics" / "qrels").glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            topic, *_, id_, grade = line.split("\t")
            if int(grade) > 0:
                of.setdefault(id_, []).append(topic)
    documents = rank_data.documents_of(shared_data() / "news-topics" / "corpus.jsonl.gz")
    every = [d for d in documents if len(of.get(d.id, ())) == 1]
    chosen = sorted(np.random.default_rng(0).permutation(len(every))[:NEWSWIRE].tolist())
    return _made([(every[i], of[every[i].id][0]) for i in chosen], coarse=True)


def per_document(found: Int64Array, gold: Int64Array) -> tuple[Float64Array, Float64Array]:
    """Return B-cubed precision and recall of each document, float64 [n] (Bagga and Baldwin, 1998)."""
    both = Counter(zip(found.tolist(), gold.tolist(), strict=True))
    shared = np.array([both[pair] for pair in zip(found.tolist(), gold.tolist(), strict=True)], float)
    return shared / np.bincount(found)[found], shared / np.bincount(gold)[gold]


def measured(found: Int64Array, gold: Int64Array) -> dict[str, float]:
    """Return B-cubed, the adjusted Rand index, precision and recall of pairs, and the number of groups of two."""
    from sklearn.metrics import adjusted_rand_score

    _, found = np.unique(found, return_inverse=True)
    _, gold = np.unique(gold, return_inverse=True)
    p, r = (float(part.mean()) for part in per_document(found, gold))
    both = np.array(list(Counter(zip(found.tolist(), gold.tolist(), strict=True)).values()))
    right, claimed, true = (
        float((n * (n - 1) / 2).sum()) for n in (both, np.bincount(found), np.bincount(gold))
    )
    figures = {
        "b3_precision": p, "b3_recall": r, "b3_f1": 2 * p * r / (p + r), "ari": adjusted_rand_score(gold, found),
        "pair_precision": right / claimed if claimed else 1.0, "pair_recall": right / true if true else 1.0,
    }  # fmt: skip
    return {name: round(float(value), 4) for name, value in figures.items()}


def lead(found: Int64Array, other: Int64Array, gold: Int64Array, samples: int = 1000) -> list[float]:
    """Return by how much one grouping's B-cubed F1 exceeds another's, with a 95 % interval (resampled true groups)."""
    numbers = [np.unique(x, return_inverse=True)[1] for x in (found, other, gold)]
    parts = [per_document(labels, numbers[2]) for labels in numbers[:2]]
    rng, groups = np.random.default_rng(0), int(numbers[2].max()) + 1

    def f1(weight: Any) -> list[float]:
        means = [(weight @ p, weight @ r) for p, r in parts]
        return [2 * p * r / (p + r) / weight.sum() for p, r in means]

    resamples = (np.bincount(rng.integers(0, groups, groups), minlength=groups) for _ in range(samples))
    leads = [one - two for one, two in (f1(times[numbers[2]]) for times in resamples)]
    one, two = f1(np.ones(len(gold)))
    return [round(float(x), 4) for x in (one - two, *np.percentile(leads, [2.5, 97.5]))]
