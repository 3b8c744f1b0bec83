"""Links between texts and documents, and batches of links in an order determined only by the seed and the epoch."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from indexes.dtypes import Int64Array


@dataclass(frozen=True, slots=True)
class Pairs:
    """Texts, documents, links (text, document) and each text's hard `negatives`, as rows. Raises ValueError."""

    texts: Sequence[str]
    documents: Sequence[str]
    links: Sequence[tuple[int, int]]
    negatives: Sequence[Sequence[int]] = field(default=())

    def __post_init__(self) -> None:
        if not self.links:
            raise ValueError("there is no link to learn from")
        for text, document in self.links:
            if not (0 <= text < len(self.texts) and 0 <= document < len(self.documents)):
                raise ValueError(
                    f"link ({text}, {document}) points outside {len(self.texts)} texts, "
                    f"{len(self.documents)} documents"
                )
        if self.negatives and len(self.negatives) != len(self.texts):
            raise ValueError(f"{len(self.texts)} texts but hard negatives for {len(self.negatives)}")

    def linked(self) -> dict[int, list[int]]:
        """Return the rows of the documents linked to each linked text, both in ascending order."""
        linked: dict[int, list[int]] = {}
        for text, document in sorted(self.links):
            linked.setdefault(text, []).append(document)
        return linked


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of texts, int64 [n], and documents, [m], some linked to each text; `positives`, bool [n, m]: the links."""

    texts: Int64Array
    documents: Int64Array
    positives: npt.NDArray[np.bool_]


class Batches:
    """Batches of up to `size` links. The order depends only on seed and epoch, so resuming means skipping."""

    def __init__(self, pairs: Pairs, size: int, seed: int, hard_negatives: int = 0) -> None:
        self._links = np.array(pairs.links, dtype=np.int64)
        self._negatives = pairs.negatives if hard_negatives else ()
        self._size, self._seed, self._hard = size, seed, hard_negatives
        self._linked = pairs.linked()

    def __len__(self) -> int:
        return (len(self._links) + self._size - 1) // self._size

    def epoch(self, number: int) -> list[Batch]:
        """Return the batches of epoch `number`; every link occurs in exactly one of them."""
        rng = np.random.default_rng([self._seed, number])
        order = rng.permutation(len(self._links))
        # batches of nearly equal sizes, so that none is left with a single link
        parts = np.array_split(self._links[order], len(self))
        return [self._batch(part, rng) for part in parts]

    def _batch(self, links: Int64Array, rng: np.random.Generator) -> Batch:
        texts, documents = np.unique(links[:, 0]), np.unique(links[:, 1])
        if self._negatives:
            hard = [d for t in texts for d in self._pick(self._negatives[int(t)], rng)]
            documents = np.unique(np.concatenate([documents, np.array(hard, dtype=np.int64)]))
        positives = np.zeros((len(texts), len(documents)), dtype=np.bool_)
        for row, text in enumerate(texts.tolist()):
            own = np.array(self._linked[text])
            places = np.searchsorted(documents, own).clip(max=len(documents) - 1)
            positives[row, places[documents[places] == own]] = True
        return Batch(texts, documents, positives)

    def _pick(self, candidates: Sequence[int], rng: np.random.Generator) -> Int64Array:
        size = min(self._hard, len(candidates))
        return rng.choice(np.array(candidates, dtype=np.int64), size=size, replace=False)
