"""What others link two collections with: scores of all pairs, and an assignment of texts to documents.

A run holds the best KEPT documents of each text with their scores, as the programs give them. RapidFuzz and
recordlinkage are not dependencies: their runs are left out where they are not installed.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from indexes.dtypes import Float32Array
from indexes.interface import Document
from linker.encoders.loading import load_encoder
from linker.engine.engine import Engine

Run = dict[str, dict[str, float]]
KEPT = 30
NEAREST = 10  # neighbours of CSLS


def bm25(directory: Path, texts: Sequence[Document]) -> Run:
    """Return the best documents of an index by BM25."""
    answer = Engine(directory).search([d.full_text for d in texts], KEPT, mode="bm25")
    return {
        d.id: dict(zip(hits.ids, hits.scores.tolist(), strict=True))
        for d, hits in zip(texts, answer.hits, strict=True)
    }


def assigned(run: Mapping[str, Mapping[str, float]]) -> Run:
    """Assign texts to documents one to one, so that the sum of the scores is largest; the others follow by score.

    Sparse (Jonker and Volgenant): only documents of the run, and "none" at the lowest score of all.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    ids = list(dict.fromkeys(id_ for of in run.values() for id_ in of))
    column = {id_: i for i, id_ in enumerate(ids)}
    cells = [(i, column[id_], score) for i, of in enumerate(run.values()) for id_, score in of.items()]
    high, low = max(score for *_, score in cells), min(0, *(score for *_, score in cells))
    top, spread = high + 1, high + 1 - low
    cells = [(i, j, top - score) for i, j, score in cells] + [
        (i, len(ids) + i, spread) for i in range(len(run))
    ]
    rows, columns, weights = (np.array(part) for part in zip(*cells, strict=True))
    graph = csr_array((weights, (rows, columns)), shape=(len(run), len(ids) + len(run)))
    _, partner = min_weight_full_bipartite_matching(graph)
    return {
        id_: dict(of) | ({ids[j]: float(top)} if j < len(ids) else {})
        for (id_, of), j in zip(run.items(), partner.tolist(), strict=True)
    }


def csls(texts: Sequence[Document], documents: Sequence[Document]) -> Run:
    """Return the best documents by MiniLM: twice the cosine less both mean cosines with the ten nearest (CSLS)."""
    encoder = load_encoder("minilm")
    x, y = (encoder.encode([d.full_text for d in some]) for some in (texts, documents))
    cosines = np.asarray(x @ y.T, dtype=np.float32)
    near = [np.sort(c, axis=1)[:, -NEAREST:].mean(axis=1) for c in (cosines, cosines.T)]
    return _run(2 * cosines - near[0][:, None] - near[1], texts, documents)


def rapidfuzz(texts: Sequence[Document], documents: Sequence[Document]) -> Run:
    """Return the best documents by RapidFuzz's token set ratio."""
    from rapidfuzz.fuzz import token_set_ratio
    from rapidfuzz.process import cdist
    from rapidfuzz.utils import default_process

    first, second = ([d.full_text for d in some] for some in (texts, documents))
    scores = cdist(first, second, scorer=token_set_ratio, processor=default_process)
    return _run(scores, texts, documents)


def recordlinkage(texts: Sequence[Document], documents: Sequence[Document]) -> Run:
    """Return the best documents by recordlinkage's cosine of q-grams, over the full index of pairs."""
    import pandas

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from recordlinkage import Compare, Index

        a, b = (pandas.DataFrame({"text": [d.full_text for d in some]}) for some in (texts, documents))
        compare = Compare()
        compare.string("text", "text", method="cosine")
        found = compare.compute(Index().full().index(a, b), a, b)
    return _run(found[0].to_numpy().reshape(len(a), len(b)), texts, documents)


RIVALS: Mapping[str, Callable[[Sequence[Document], Sequence[Document]], Run]] = {
    "MiniLM + CSLS": csls,
    "RapidFuzz": rapidfuzz,
    "recordlinkage": recordlinkage,
}


def _run(scores: Float32Array, texts: Sequence[Document], documents: Sequence[Document]) -> Run:
    """Return the best documents by `scores` [texts, documents]; equal ones are in random order, always the same."""
    order = list(range(len(documents)))
    random.Random(0).shuffle(order)
    out = {}
    for text, line in zip(texts, scores[:, order], strict=True):
        best = np.argsort(-line, kind="stable")[:KEPT].tolist()
        out[text.id] = {documents[order[j]].id: float(line[j]) for j in best}
    return out
