"""Retrieval sets of the shared data with all links, for BM25 alone: documents, queries and their links."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.support import rank_data
from benchmarks.support.common import shared_data
from linker.corpora import read_queries
from linker.evaluation.significance import bootstrap


@dataclass(frozen=True, slots=True)
class LinkSet:
    """Documents as texts; per split, queries as texts and each one's relevant rows."""

    documents: tuple[str, ...]
    splits: dict[str, tuple[list[str], list[set[int]]]]


@functools.cache
def link_set(name: str) -> LinkSet:
    """Return a set by its name in `NAMES`; "articles2statements" is "statements2articles" the other way round."""
    reverse = name == "articles2statements"
    judged = rank_data.links("statements2articles" if reverse else name)
    documents = {
        d.id: d.full_text for d in rank_data.documents_for("statements2articles" if reverse else name)
    }
    queries = {query.id: query.text for part in judged.values() for query in part.queries}
    if reverse:
        every = read_queries(shared_data() / "statements2articles" / "queries.jsonl.gz")
        documents, queries = {query.id: query.text for query in every}, documents
    row = {id_: n for n, id_ in enumerate(documents)}
    splits: dict[str, tuple[list[str], list[set[int]]]] = {}
    for split, part in judged.items():
        relevant: dict[str, set[int]] = {}
        for one, grades in part.qrels.items():
            for other in (id_ for id_, grade in grades.items() if grade > 0):
                query, document = (other, one) if reverse else (one, other)
                relevant.setdefault(query, set()).add(row[document])
        splits[split] = [queries[q] for q in relevant], list(relevant.values())
    return LinkSet(tuple(documents.values()), splits)


NAMES = ("tweets2claims", "statements2articles", "articles2statements", "descriptions", "bbc-news")


def reciprocal_ranks(rows: npt.NDArray[np.int64], relevant: Sequence[set[int]]) -> npt.NDArray[np.float64]:
    """Return 1 / rank of the first relevant row per query [n], 0 if there is none among `rows` [n, k]."""
    ranks = []
    for best, right in zip(rows.tolist(), relevant, strict=True):
        ranks.append(next((1 / rank for rank, row in enumerate(best, 1) if row in right), 0.0))
    return np.array(ranks)


def measures(values: npt.NDArray[np.float64]) -> dict[str, float]:
    """Return MRR, Success@1 and @5 of reciprocal ranks [n]."""
    found = {"mrr": values, "success_1": values == 1, "success_5": values >= 0.2}
    return {name: round(float(part.mean()), 4) for name, part in found.items()}


def interval(values: npt.ArrayLike) -> list[float]:
    """Return the 95 % bootstrap interval of the mean of values [n]."""
    return [round(q, 4) for q in bootstrap(values, samples=2000)]
