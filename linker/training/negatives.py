"""Hard negatives: documents that BM25 ranks high for a text and that are not linked to it."""

from __future__ import annotations

from indexes.text.bm25 import Bm25Index
from linker.training.batches import Pairs

BLOCK = 512  # texts per search


def mine_negatives(pairs: Pairs, depth: int) -> list[list[int]]:
    """Return per text the rows of its top `depth` documents under BM25, without the linked ones.

    Texts without a link get an empty list.
    """
    index = Bm25Index()
    index.add([str(row) for row in range(len(pairs.documents))], list(pairs.documents))
    linked = pairs.linked()
    negatives: list[list[int]] = [[] for _ in pairs.texts]
    queries = list(linked)
    try:
        for start in range(0, len(queries), BLOCK):
            part = queries[start : start + BLOCK]
            rows, _ = index.search_rows([pairs.texts[text] for text in part], depth)
            for text, best in zip(part, rows.tolist(), strict=True):
                negatives[text] = [row for row in best if row >= 0 and row not in linked[text]]
    finally:
        index.close()
    return negatives
