"""How well an encoder finds each text's documents: the figures a training looks at."""

from __future__ import annotations

import numpy as np

from linker.encoders import Encoder
from linker.training.batches import Pairs


def retrieval_figures(encoder: Encoder, pairs: Pairs) -> dict[str, float]:
    """Return MRR and Success@1, @5 of the linked texts of `pairs` among all its documents; ties count against."""
    ranks = first_ranks(encoder, pairs)
    return {
        "mrr": float((1 / ranks).mean()),
        "success_1": float((ranks == 1).mean()),
        "success_5": float((ranks <= 5).mean()),
    }


def first_ranks(encoder: Encoder, pairs: Pairs) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the rank, from 1, of each linked text's best document, texts in ascending order."""
    linked: dict[int, list[int]] = {}
    for text, document in sorted(pairs.links):
        linked.setdefault(text, []).append(document)
    documents = encoder.encode(pairs.documents)
    texts = encoder.encode([pairs.texts[text] for text in linked])
    ranks = np.empty(len(linked), dtype=np.int64)
    for row, own in enumerate(linked.values()):
        scores = documents @ texts[row]
        best = scores[own].max()
        scores[own] = -np.inf
        ranks[row] = 1 + (scores >= best).sum()
    return ranks
