"""The documents in the scope of a review, and the seed that a document resembles most."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from indexes.interface import Filter, RowArray
from indexes.rows import Rows
from indexes.text.bm25 import Bm25Index
from indexes.text.parameters import AnalysisSettings
from linker.review.interface import Seed
from linker.review.settings import Settings

# random positions per block, and number of blocks tried before all members are enumerated
BLOCK, BLOCKS = 4096, 8


class Population:
    """Live documents that the filter accepts, without the seeds; for pairs, without each seed's own document.

    `rows` (int64 [n], ascending) are the rows of these documents; for pairs, including seeds.
    """

    def __init__(self, rows: Rows, seeds: Sequence[Seed], settings: Settings) -> None:
        self._live, self._ids, self._pairs = rows, rows.ids, settings.unit == "pairs"
        allowed = rows.mask(Filter.parse(settings.where))
        mask = np.ones(len(rows.ids), dtype=bool) if allowed is None else allowed.copy()
        self.documents = {seed.id: seed.document for seed in seeds if seed.document and seed.document in rows}
        own = [row for row in rows.locate([*self.documents.values()]).tolist() if mask[row]]
        if not self._pairs:
            mask[own] = False
        self._mask = mask
        self.rows: RowArray = np.flatnonzero(mask).astype(np.int64)
        self._seeds = list(dict.fromkeys(seed.id for seed in seeds)) if self._pairs else [""]
        self._places = len(self.rows) * len(self._seeds)
        self.size = self._places - (len(own) if self._pairs else 0)

    def holds(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """Return whether each document, with its seed (ignored in a topic), is in the review's scope."""
        rows, seeds = self._live.find([id_ for _, id_ in pairs]).tolist(), set(self._seeds)
        return [
            0 <= row < len(self._mask)
            and bool(self._mask[row])
            and (not self._pairs or (seed in seeds and self._is_member(seed, id_)))
            for row, (seed, id_) in zip(rows, pairs, strict=True)
        ]

    def rows_of(self, ids: Sequence[str]) -> RowArray:
        """Return the rows of those documents that are in a topic's scope, in order."""
        rows = self._live.find(ids)
        return rows[self._mask[rows] & (rows >= 0)]

    def __contains__(self, pair: tuple[str, str]) -> bool:
        return self.holds([pair])[0]

    def knows(self, id_: str) -> bool:
        """Return whether the index contains a document."""
        return id_ in self._live

    def at_random(self, seeds: Sequence[int], free: Callable[[str, str], bool]) -> tuple[str, str] | None:
        """Return a random member that is `free`, as seed (empty in a topic) and document, or None if none is.

        The same `seeds` give the same draw as long as the same members are free.
        """
        generator = np.random.default_rng(seeds)
        for seed, id_ in self._draws(generator):
            if self._is_member(seed, id_) and free(seed, id_):
                return seed, id_
        left = [p for p in range(self._places) if self._is_member(*self._at(p)) and free(*self._at(p))]
        return self._at(left[int(generator.integers(len(left)))]) if left else None

    def _draws(self, generator: np.random.Generator) -> Iterator[tuple[str, str]]:
        for _ in range(BLOCKS if self._places else 0):
            for place in generator.integers(self._places, size=BLOCK).tolist():
                yield self._at(place)

    def _at(self, place: int) -> tuple[str, str]:
        seed, number = divmod(place, len(self.rows))
        return self._seeds[seed], self._ids[int(self.rows[number])]

    def _is_member(self, seed: str, id_: str) -> bool:
        return not self._pairs or self.documents.get(seed) != id_


class Nearest:
    """Finds the seed of a topic that a document resembles most, by BM25, to show next to it."""

    def __init__(self, seeds: Sequence[Seed], analysis: AnalysisSettings) -> None:
        self._first = seeds[0].id if seeds else ""
        self._index = Bm25Index(analysis)
        if len(seeds) > 1:
            self._index.add([seed.id for seed in seeds], [seed.full_text for seed in seeds])

    def of(self, text: str) -> str:
        """Return the seed's id; the first seed's if no seed shares a word with the text."""
        return next(iter(self.likeliest(text, 1)), self._first)

    def likeliest(self, text: str, count: int) -> tuple[str, ...]:
        """Return the ids of the most similar seeds that share a word with the text, best first."""
        if not len(self._index):
            return (self._first,) if self._first else ()
        (hits,) = self._index.search([text], count)
        return tuple(hits.ids)
