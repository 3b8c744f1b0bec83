"""Hard negatives: documents that BM25 ranks high for a text and that nothing links to it."""

from __future__ import annotations

from indexes.text.bm25 import Bm25Index
from linker.training.batches import Pairs

BLOCK = 512  # texts asked at once


def mine_negatives(pairs: Pairs, depth: int) -> list[list[int]]:
    """Return for each text the rows of its best `depth` documents by BM25, the linked ones left out.

    Only texts that have a link are asked; the others get none.
    """
    index = Bm25Index()
    index.add([str(row) for row in range(len(pairs.documents))], list(pairs.documents))
    linked = pairs.linked()
    found: list[list[int]] = [[] for _ in pairs.texts]
    asked = list(linked)
    try:
        for start in range(0, len(asked), BLOCK):
            part = asked[start : start + BLOCK]
            rows, _ = index.search_rows([pairs.texts[text] for text in part], depth)
            for text, best in zip(part, rows.tolist(), strict=True):
                found[text] = [row for row in best if row >= 0 and row not in linked[text]]
    finally:
        index.close()
    return found
