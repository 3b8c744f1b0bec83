"""The features of a query with one of its documents: ten numbers from the scores of both retrievers."""

from collections.abc import Sequence

import numpy as np

from indexes.anywhere import AnyCollection
from indexes.dtypes import Float64Array, Int64Array
from indexes.fusion import Ranking
from indexes.hybrid import Embed, HybridIndex
from indexes.interface import BackendUnavailableError, Filter

DEPTH = 100  # documents per retriever among which scores are compared
BATCH = 256  # queries per batch, with a few documents each
MOST_PAIRS = 1 << 15  # pairs of a query and a document per batch, since their vectors are copied
TEXT_NAMES = ("bm25", "share", "margin", "ratio", "z", "length")
VECTOR_NAMES = ("cosine", "cosine_margin", "agreement", "dense_rank")
NAMES = (*TEXT_NAMES, *VECTOR_NAMES)


def names(encoder: bool) -> tuple[str, ...]:
    """Return the names of the features, in an index with or without an encoder."""
    return NAMES if encoder else TEXT_NAMES


class Describer:
    """Computes features of an index's documents for queries."""

    def __init__(self, collection: AnyCollection, embed: Embed | None) -> None:
        """`embed` turns texts into vectors, float32 [n, dim]; None: without an encoder."""
        record = collection.manifest.encoder if embed and collection.manifest.embeds else None
        self._collection, self._embed = collection, embed if record else None
        self.names = names(record is not None)

    def describe(
        self,
        texts: Sequence[str],
        rows: Int64Array,
        where: Filter | None = None,
        ranking: HybridIndex | None = None,
    ) -> Float64Array:
        """Return the features of documents `rows` (int64 [n, c], padded with −1) for each text, [n, c, names].

        The rows refer to `ranking`, a ranking of the collection; by default, the collection's own. The scores are
        compared with those of the best DEPTH documents that `where` allows. Raises BackendUnavailableError if a
        retriever cannot answer.
        """
        step = max(1, min(BATCH, MOST_PAIRS // max(1, rows.shape[1])))
        hybrid = ranking or self._collection.hybrid
        parts = [
            self._describe(hybrid, texts[i : i + step], rows[i : i + step], where)
            for i in range(0, len(texts), step)
        ]
        return np.concatenate(parts) if parts else np.zeros((*rows.shape, len(self.names)))

    def _describe(
        self, hybrid: HybridIndex, texts: Sequence[str], rows: Int64Array, where: Filter | None
    ) -> Float64Array:
        if hybrid.text is None:
            raise BackendUnavailableError("probabilities need BM25, which this index does not have")
        depth = max(DEPTH, rows.shape[1])
        words = hybrid.text.search_rows(texts, depth, where)
        length = np.log1p([len(text) for text in texts])
        columns = [*_text_features(words, rows), np.broadcast_to(length[:, None], rows.shape)]
        if self._embed is not None and hybrid.vectors is not None:
            queries = np.asarray(self._embed(texts), dtype=np.float32)
            near = hybrid.vectors.search_rows(queries, depth, where)
            known = self._collection.vectors_of(hybrid, rows)
            cosine = np.einsum("ncd,nd->nc", known, queries)
            columns += _vector_features(words, near, rows, cosine.astype(np.float64))
        return np.where(rows[:, :, None] >= 0, np.stack(columns, axis=2), 0.0)


def _text_features(words: Ranking, rows: Int64Array) -> list[Float64Array]:
    """Return five features of `rows`, each [n, c], from BM25's scores.

    They are the score, its ratio to the best, its lead over the best other, the ratio of the lead to the best, and the
    score's z-score among the top DEPTH. A document beyond the ranking gets the ranking's lowest score, an upper bound.
    """
    found, scores = words[0], np.where(words[0] >= 0, words[1], 0.0).astype(np.float64)
    ranks = _ranks(found, rows)
    lowest = np.min(scores, axis=1, keepdims=True, where=found >= 0, initial=np.inf)
    lowest = np.where(np.isfinite(lowest), lowest, 0.0)
    score = np.where(ranks >= 0, np.take_along_axis(scores, np.maximum(ranks, 0), 1), lowest)
    best, other = scores[:, :1], _best_other(scores, ranks)
    top = scores[:, :DEPTH]
    count = np.maximum((found[:, :DEPTH] >= 0).sum(axis=1, keepdims=True), 1)
    mean = top.sum(axis=1, keepdims=True) / count
    spread = np.sqrt(np.maximum((top**2).sum(axis=1, keepdims=True) / count - mean**2, 0.0))
    return [
        score, _over(score, best), score - other, _over(score - other, best), _over(score - mean, spread)
    ]  # fmt: skip


def _vector_features(
    words: Ranking, near: Ranking, rows: Int64Array, cosine: Float64Array
) -> list[Float64Array]:
    """Return the cosine, its lead over the best other, how many retrievers put it first, and its log dense rank."""
    ranks = _ranks(near[0], rows)
    other = _best_other(np.where(near[0] >= 0, near[1], 0.0).astype(np.float64), ranks)
    first = (words[0][:, :1] == rows).astype(np.float64) + (near[0][:, :1] == rows)
    beyond = near[0].shape[1]
    return [cosine, cosine - other, first, np.log1p(np.where(ranks >= 0, ranks, beyond))]


def _best_other(scores: Float64Array, ranks: Int64Array) -> Float64Array:
    """Return the best of `scores` [n, D] without the document at each of `ranks` [n, c]: [n, c]."""
    second = scores[:, min(1, scores.shape[1] - 1)]
    return np.where(ranks == 0, second[:, None], scores[:, :1])


def _ranks(found: Int64Array, rows: Int64Array) -> Int64Array:
    """Return the position of `rows` [n, c] in the rankings `found` [n, D], from 0; −1 if absent."""
    out = np.full(rows.shape, -1, dtype=np.int64)
    for number, (ranked, documents) in enumerate(zip(found, rows, strict=True)):
        order = np.argsort(ranked)
        position = np.minimum(np.searchsorted(ranked[order], documents), len(ranked) - 1)
        present = (ranked[order[position]] == documents) & (documents >= 0)
        out[number, present] = order[position][present]
    return out


def _over(values: Float64Array, by: Float64Array) -> Float64Array:
    return np.divide(values, by, out=np.zeros_like(values), where=np.broadcast_to(by > 1e-9, values.shape))
