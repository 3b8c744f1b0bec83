"""Evaluation during training: how well an encoder finds each text's documents."""

from itertools import chain, islice

import numpy as np

from indexes.dtypes import Float64Array
from indexes.text.bm25 import Bm25Index
from linker.encoders.text import TextEncoder
from linker.evaluation.first_ranks import reciprocal_ranks, successes
from linker.training.batches import Pairs
from linker.training.parallel import ALONE, World

DEPTH = 50  # depth of BM25's ranking from which the other candidates are taken


class Judge:
    """Tokenised texts and documents for evaluating an encoder after every epoch."""

    def __init__(self, encoder: TextEncoder, pairs: Pairs) -> None:
        self._linked = pairs.linked()
        texts = [pairs.texts[text] for text in self._linked]
        self._texts, self._documents = (
            encoder.tokenizer.encode_batch(x, encoder.max_length) for x in (texts, pairs.documents)
        )

    def figures(self, encoder: TextEncoder, world: World = ALONE) -> dict[str, float]:
        """Return MRR, Success@1 and Success@5 of the linked texts; ties count against the encoder."""
        ranks = self.ranks(encoder, world)
        return {
            "mrr": float(reciprocal_ranks(ranks).mean()),
            "success_1": float(successes(ranks, 1).mean()),
            "success_5": float(successes(ranks, 5).mean()),
        }

    def ranks(self, encoder: TextEncoder, world: World = ALONE) -> Float64Array:
        """Return each linked text's best rank, float64 [t], by row; each process of `world` encodes a share."""
        texts, documents = (
            world.gathered(encoder.encode_ids([ids[row] for row in world.share(len(ids))]), len(ids))
            for ids in (self._texts, self._documents)
        )
        ranks = np.empty(len(self._linked))
        for row, linked in enumerate(self._linked.values()):
            scores = documents @ texts[row]
            best = scores[linked].max()
            scores[linked] = -np.inf
            ranks[row] = 1 + (scores >= best).sum()
        return ranks


def dev_sample(pairs: Pairs, size: int) -> Pairs:
    """Return `pairs` with at most `size` documents: the linked ones, topped up with BM25's best.

    Against random documents, every model looks good, and the best one need not be the best on all documents.
    All linked documents are kept, even if there are more than `size`.
    """
    linked = sorted({document for _, document in pairs.links})
    if len(pairs.documents) <= max(size, len(linked)):
        return pairs
    rivals = [negatives for negatives in mine_negatives(pairs, DEPTH) if negatives]
    ranked = (row for rank in range(DEPTH) for negatives in rivals for row in negatives[rank : rank + 1])
    rows = sorted(islice(dict.fromkeys(chain(linked, ranked)), max(size, len(linked))))
    position = {row: new for new, row in enumerate(rows)}
    links = [(text, position[document]) for text, document in pairs.links]
    return Pairs(pairs.texts, [pairs.documents[row] for row in rows], links)


BLOCK = 512  # texts per search


def mine_negatives(pairs: Pairs, depth: int) -> list[list[int]]:
    """Return each text's top `depth` rows under BM25 without the linked ones; none for a text without links."""
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
