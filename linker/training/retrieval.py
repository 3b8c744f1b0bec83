"""How well an encoder finds each text's documents: the figures a training looks at."""

from __future__ import annotations

from itertools import chain, islice

import numpy as np

from indexes.dtypes import Float64Array
from linker.encoders.text import TextEncoder
from linker.evaluation.first_ranks import reciprocal_ranks, successes
from linker.training.batches import Pairs
from linker.training.negatives import mine_negatives

DEPTH = 50  # of BM25's ranking that rivals are taken from


class Judge:
    """Texts tokenised once, judged after every epoch."""

    def __init__(self, encoder: TextEncoder, pairs: Pairs) -> None:
        self._linked = pairs.linked()
        texts = [pairs.texts[text] for text in self._linked]
        self._texts, self._documents = (
            encoder.tokenizer.encode_batch(x, encoder.max_length) for x in (texts, pairs.documents)
        )

    def figures(self, encoder: TextEncoder) -> dict[str, float]:
        """Return MRR and Success@1, @5 of the linked texts among all documents; ties count against."""
        ranks = self.ranks(encoder)
        return {
            "mrr": float(reciprocal_ranks(ranks).mean()),
            "success_1": float(successes(ranks, 1).mean()),
            "success_5": float(successes(ranks, 5).mean()),
        }

    def ranks(self, encoder: TextEncoder) -> Float64Array:
        """Return the rank, from 1, of each linked text's best document, texts in ascending order."""
        texts, documents = (encoder.encode_ids(x) for x in (self._texts, self._documents))
        ranks = np.empty(len(self._linked))
        for row, own in enumerate(self._linked.values()):
            scores = documents @ texts[row]
            best = scores[own].max()
            scores[own] = -np.inf
            ranks[row] = 1 + (scores >= best).sum()
        return ranks


def dev_sample(pairs: Pairs, size: int) -> Pairs:
    """Return `pairs` with at most `size` documents: the linked ones, filled up with those that BM25 ranks best.

    Against documents at random every model looks good, and the best one there need not be the best on all.
    """
    linked = sorted({document for _, document in pairs.links})
    if len(pairs.documents) <= max(size, len(linked)):
        return pairs
    rivals = [found for found in mine_negatives(pairs, DEPTH) if found]
    ranked = (row for rank in range(DEPTH) for found in rivals for row in found[rank : rank + 1])
    kept = sorted(islice(dict.fromkeys(chain(linked, ranked)), max(size, len(linked))))
    place = {row: new for new, row in enumerate(kept)}
    links = [(text, place[document]) for text, document in pairs.links]
    return Pairs(pairs.texts, [pairs.documents[row] for row in kept], links)
