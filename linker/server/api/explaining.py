"""Explain why a document was found: its score from each retriever, and what contributed to a ranker's score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from indexes.anywhere import AnyCollection
from indexes.hybrid import Answer
from indexes.interface import RowFilter, RowSearch
from indexes.text.search import TextSearch
from linker.engine.engine import Engine
from linker.scoring.ranking.ranker import Ranker

MOST_TEXTS, MOST_K = 10, 100  # limits of a request with `explain`, which costs a second search
FEATURES = 8  # features of a ranker shown per document


def explain(
    engine: Engine, texts: Sequence[str], answer: Answer, ranker: Ranker | None
) -> list[list[dict[str, Any]]]:
    """Return for each hit of each text its scores from `bm25` and `dense`, and the parts of the `ranker`'s score.

    A score is missing if its retriever is missing, or if the document shares no term with the text. Documents that a
    commit has removed since have no scores.
    """
    collection = engine.collection
    vectors = collection.hybrid.vectors
    queries = engine.embed(texts) if vectors is not None and collection.manifest.encoder else None
    explained = []
    for number, (text, hits) in enumerate(zip(texts, answer.hits, strict=True)):
        scores: dict[str, dict[str, float]] = {}
        if collection.hybrid.text is not None:
            scores["bm25"] = _scores(collection, collection.hybrid.text, [text], hits.ids)
        if vectors is not None and queries is not None:
            scores["dense"] = _scores(collection, vectors, queries[number : number + 1], hits.ids)
        moved = _moved(engine, text, ranker) if answer.ranker and ranker else {}
        explained.append(
            [
                {name: found[id_] for name, found in scores.items() if id_ in found}
                | ({"ranker": moved[id_]} if id_ in moved else {})
                for id_ in hits.ids
            ]
        )
    return explained


def _scores(
    collection: AnyCollection, retriever: RowSearch | TextSearch, query: Any, ids: Sequence[str]
) -> dict[str, float]:
    """Return the scores that a retriever gives to documents, by id."""
    if collection.manifest.elastic:  # a server cannot be queried by row
        return {}
    known = [id_ for id_ in ids if id_ in collection.rows]
    if not known:
        return {}
    allowed = np.zeros(len(collection.rows.ids), dtype=bool)
    allowed[collection.rows.locate(known)] = True
    (hits,) = collection.rows.hits(*retriever.search_rows(query, len(known), RowFilter((), allowed)))
    return dict(zip(hits.ids, hits.scores.tolist(), strict=True))


def _moved(engine: Engine, text: str, ranker: Ranker) -> dict[str, dict[str, Any]]:
    """Return the parts of the ranker's score for each candidate, by id."""
    _, _, moved = engine.ranked_search(ranker).explain(text, FEATURES)
    return {id_: {"start": m.start, "features": dict(m.features), "rest": m.rest} for id_, m in moved}
