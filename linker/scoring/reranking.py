"""Rerank the best candidates with a scorer that reads query and document together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from indexes.errors import importing
from indexes.fusion import Fusion, fuse_hits
from indexes.interface import Document, Hits, IndexesError, ScoreArray
from linker.scoring.pairs.stock import CrossEncoderScorer, is_cross_encoder
from linker.scoring.ranking import pooled
from linker.scoring.ranking.folder import is_saved as is_ranker
from linker.scoring.ranking.folder import load as load_ranker

if TYPE_CHECKING:
    from indexes.hybrid import Answer
    from linker.scoring.ranking.ranker import Ranker

DEPTH = 100


@runtime_checkable
class Reranker(Protocol):
    """A scorer of pairs of query and document."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> ScoreArray:
        """Return the score of each (query, document text), float32 [n]; higher is better."""
        ...


def rerank(
    answer: Answer,
    texts: Sequence[str],
    reranker: Reranker,
    document: Callable[[str], Document],
    k: int,
    weight: float = 1.0,
) -> Answer:
    """Score every candidate against its query, and return the answer with each query's top k.

    With `weight` 1, the scores are the reranker's; below 1, the z-scores of both stages within a query are added, with
    weight `weight` for the reranker's. Ties keep the order of the first stage. Raises IndexesError if `weight` is not
    from 0 to 1.
    """
    if not 0 <= weight <= 1:
        raise IndexesError(f"the reranker's weight must be from 0 to 1, not {weight:g}")
    contents = {id_: document(id_).full_text for hits in answer.hits for id_ in hits.ids}
    pairs = [(text, contents[id_]) for text, hits in zip(texts, answer.hits, strict=True) for id_ in hits.ids]
    scores = iter(np.split(reranker.score(pairs), np.cumsum([len(h) for h in answer.hits])[:-1]))
    second = [_sort(hits.ids, next(scores)) for hits in answer.hits]
    if weight < 1:
        fusion = Fusion("zscore", (1 - weight, weight))
        second = fuse_hits([answer.hits, second], fusion, k)
    best = [
        dataclasses.replace(before, ids=hits.ids[:k], scores=hits.scores[:k], probabilities=None)
        for before, hits in zip(answer.hits, second, strict=True)
    ]
    # The scores are no longer probabilities.
    return dataclasses.replace(answer, hits=best, reranked=True, ranker="")


def load_reranker(folder: str | Path) -> Reranker | Ranker:
    """Return the ranker or scorer of pairs in a folder written by `linker rank train` or `linker sts train`.

    A folder may also hold a CrossEncoder of sentence-transformers (Reimers & Gurevych, 2019) with one score.

    "pooled" is linker's default ranker, unless a folder has that name.

    Raises InputError if the folder has neither, MissingExtraError if a scorer needs the extra `pretrained`.
    """
    if str(folder) == pooled.NAME and not Path(folder).exists():
        return pooled.load()
    if is_ranker(Path(folder)):
        return load_ranker(Path(folder))
    with importing("reranking", "pretrained"):
        from linker.scoring.pairs.sts.scorer_folder import load
    if is_cross_encoder(Path(folder)):
        return CrossEncoderScorer(Path(folder))
    return load(Path(folder))


def _sort(ids: tuple[str, ...], scores: ScoreArray) -> Hits:
    order = np.argsort(-scores, kind="stable")
    return Hits(tuple(ids[i] for i in order.tolist()), scores[order])
