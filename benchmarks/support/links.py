"""The retrieval sets of the shared data with every link, for BM25 alone: documents, queries and what they link to."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.support.common import shared_data
from benchmarks.support.direct import read

SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class LinkSet:
    """Documents as texts; per split, queries as texts and each one's relevant rows."""

    documents: tuple[str, ...]
    splits: dict[str, tuple[list[str], list[set[int]]]]


def _qrels(path: Path) -> list[tuple[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return [
        (query, document) for query, document, grade in (line.split("\t") for line in lines) if int(grade)
    ]


def _linked(
    documents: dict[str, str], queries: dict[str, str], links: dict[str, list[tuple[str, str]]]
) -> LinkSet:
    row = {id_: n for n, id_ in enumerate(documents)}
    splits: dict[str, tuple[list[str], list[set[int]]]] = {}
    for split, pairs in links.items():
        relevant: dict[str, set[int]] = {}
        for query, document in pairs:
            relevant.setdefault(query, set()).add(row[document])
        splits[split] = [queries[q] for q in relevant], list(relevant.values())
    return LinkSet(tuple(documents.values()), splits)


@functools.cache
def link_set(name: str) -> LinkSet:
    """Return a set by its name in `NAMES`."""
    data = shared_data()
    if name == "bbc-news":  # headline → article
        fields = list(_fields(data / name / "corpus.jsonl.gz"))
        documents = {id_: text for id_, _, text in fields}
        return _linked(documents, {i: title for i, title, _ in fields}, {"test": [(i, i) for i in documents]})
    folder = data / name.replace("articles2statements", "statements2articles")
    corpus = (
        data / "linked-pages" / "masked" / "en.jsonl.gz"
        if name == "descriptions"
        else folder / "corpus.jsonl.gz"
    )
    documents = {id_: text for id_, text, _ in read(corpus)}
    queries = {id_: text for id_, text, _ in read(folder / "queries.jsonl.gz")}
    links = {s: _qrels(path) for s in SPLITS if (path := folder / "qrels" / f"{s}.tsv").exists()}
    if name == "articles2statements":
        links = {s: [(document, query) for query, document in pairs] for s, pairs in links.items()}
        documents, queries = queries, documents
    return _linked(documents, queries, links)


def _fields(corpus: Path) -> list[tuple[str, str, str]]:
    """Return id, title and text of each document."""
    found = []
    for id_, text, _ in read(corpus):
        title, _, body = text.partition("\n")
        found.append((id_, title, body))
    return found


NAMES = ("tweets2claims", "statements2articles", "articles2statements", "descriptions", "bbc-news")


def reciprocal_ranks(rows: npt.NDArray[np.int64], relevant: Sequence[set[int]]) -> npt.NDArray[np.float64]:
    """Return 1 / rank of the first relevant row per query [n], 0 where there is none among `rows` [n, k]."""
    found = []
    for best, wanted in zip(rows.tolist(), relevant, strict=True):
        found.append(next((1 / rank for rank, row in enumerate(best, 1) if row in wanted), 0.0))
    return np.array(found)


def interval(values: npt.NDArray[np.float64], samples: int = 2000) -> list[float]:
    """Return the 95 % bootstrap interval of the mean of values [n]."""
    draws = np.random.default_rng(0).integers(0, len(values), (samples, len(values)))
    return [round(float(q), 4) for q in np.quantile(values[draws].mean(axis=1), (0.025, 0.975))]
