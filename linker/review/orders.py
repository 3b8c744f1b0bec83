"""The order that does not learn: the candidates of many seeds, merged as they are asked for, to any depth."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from indexes.interface import Filter, Hits
from linker.errors import InputError
from linker.review.interface import Candidate, Judgement, Order
from linker.review.population import Population
from linker.review.seeds import Seed, full_text
from linker.review.settings import Settings

if TYPE_CHECKING:
    from linker.engine import Engine

FIRST = 32  # candidates held per seed at first
DEEPER = 4  # times as many are fetched when they are used up
BATCH = 256  # seeds searched at a time
MOMENTS = 100  # candidates of which a seed's mean and deviation are taken


class Queue(Order, Protocol):
    """An order that says what it is."""

    @property
    def version(self) -> str:
        """The fingerprint of what orders the documents, for `Judgement.model`."""
        ...

    @property
    def degraded(self) -> str:
        """What was unavailable, or an empty text (see `Answer.degraded`)."""
        ...

    def restart(self) -> None:
        """Forget what was told. What was handed out may come again."""
        ...


class _Stream:
    """The candidates of one seed, best first; those that were not handed out yet are held up to a depth."""

    def __init__(self, number: int, seed: Seed) -> None:
        self.number, self.seed = number, seed
        self.depth = 0  # of the last search
        self.ended = False
        self.mean, self.deviation = 0.0, 1.0
        self.waiting: deque[tuple[int, str, float]] = deque()  # rank, document, score
        self.taken: set[str] = set()

    def take(self, hits: Hits, depth: int) -> None:
        """Hold the candidates of a search of this depth that were not handed out, of the first one the first few."""
        keep = len(hits) if self.depth else FIRST
        if not self.depth:
            scores = hits.scores[:MOMENTS]
            self.mean, self.deviation = (
                float(scores.mean()) if len(scores) else 0.0,
                (float(scores.std()) or 1.0) if len(scores) else 1.0,
            )
        ranked = enumerate(zip(hits.ids[:keep], hits.scores[:keep].tolist(), strict=True), start=1)
        self.waiting = deque((rank, id_, score) for rank, (id_, score) in ranked if id_ not in self.taken)
        self.ended = len(hits) < depth and keep >= len(hits)
        self.depth = min(depth, keep) if not self.depth else depth


class MergedOrder:
    """The best candidate of each seed, merged by a value that can be compared over seeds.

    Settings.order "z": how many standard deviations a score is above the mean of the seed's first MOMENTS. "rank":
    every seed's first candidate, then every seed's second. In a topic a document comes once. With `per_seed`, a seed is
    done when `until` relevant documents were found for it. Memory is in proportion to the number of seeds and of
    documents handed out.
    """

    def __init__(
        self, engine: Engine, seeds: Sequence[Seed], settings: Settings, population: Population
    ) -> None:
        self._engine, self._settings, self._population = engine, settings, population
        self._where = Filter.parse(settings.where)
        self._most = max(1, len(engine))
        self._by = settings.order or "z"
        self._streams = [_Stream(number, seed) for number, seed in enumerate(seeds)]
        self._own = set(population.documents.values())
        self._done: set[tuple[str, str]] = set()
        self._found: dict[str, set[str]] = {}  # relevant documents by seed
        self._heap: list[tuple[float, int, int]] = []  # −value, rank, number of the stream
        self._started = False
        self._last: _Stream | None = None  # whose candidate was handed out, and that is not on the heap
        self.degraded = ""
        self.version = f"merged by {self._by}, generation {engine.collection.manifest.generation}"
        if self._by == "probability":
            raise InputError(f"{engine.directory} has no calibration: choose --order z or rank")

    def next(self) -> Candidate | None:
        """Return the best candidate left, or None at the end. Raises as a search does."""
        if not self._started:
            self._start()
        while True:
            if self._last is not None:
                self._push(self._last)
            if not self._heap:
                self._last = None
                return None
            self._last = stream = self._streams[heapq.heappop(self._heap)[2]]
            rank, id_, score = stream.waiting.popleft()
            stream.taken.add(id_)
            if self._is_wanted(stream.seed.id, id_):
                self._done.add(self._key(stream.seed.id, id_))
                return Candidate(stream.seed.id, id_, score, rank)

    def tell(self, judgement: Judgement) -> None:
        """Leave the document out from now on; where `until` counts per seed, count it."""
        key = self._key(judgement.seed, judgement.id)
        self._done.add(key)
        if judgement.relevant:
            self._found.setdefault(judgement.seed, set()).add(judgement.id)

    def restart(self) -> None:
        """Forget what was told. A seed's candidates that were handed out do not come again."""
        self._done.clear()
        self._found.clear()
        if self._started:
            self._heap, self._last = [], None
            for stream in self._streams:
                self._push(stream)

    def total(self, seed: str) -> int:
        """Return how many candidates a seed has at all; KeyError where there is no such seed."""
        number = {stream.seed.id: stream.number for stream in self._streams}[seed]
        (hits,) = self._search([self._streams[number]], self._most)
        return sum(id_ not in self._left_out(seed) for id_ in hits.ids)

    def _left_out(self, seed: str) -> set[str]:
        """Return the documents that are no candidates of a seed, being seeds themselves."""
        documents = self._population.documents
        return {documents.get(seed, "")} if self._settings.unit == "pairs" else self._own

    def _key(self, seed: str, id_: str) -> tuple[str, str]:
        return (seed if self._settings.unit == "pairs" else "", id_)

    def _is_wanted(self, seed: str, id_: str) -> bool:
        return self._key(seed, id_) not in self._done and id_ not in self._left_out(seed)

    def _start(self) -> None:
        self._started = True
        for start in range(0, len(self._streams), BATCH):
            part, depth = self._streams[start : start + BATCH], min(max(FIRST, MOMENTS), self._most)
            for stream, hits in zip(part, self._search(part, depth), strict=True):
                stream.take(hits, depth)
                self._push(stream)

    def _search(self, streams: Sequence[_Stream], depth: int) -> list[Hits]:
        answer = self._engine.search(
            [full_text(stream.seed) for stream in streams], depth, mode=self._settings.mode, where=self._where
        )
        self.degraded = self.degraded or answer.degraded
        return answer.hits

    def _push(self, stream: _Stream) -> None:
        """Put the stream's next candidate on the heap, after a deeper search where it holds none."""
        until = self._settings.until if self._settings.per_seed else None
        if until is not None and len(self._found.get(stream.seed.id, ())) >= until:
            return
        while not stream.waiting and not stream.ended:
            if stream.depth >= self._most:
                stream.ended = True
                break
            depth = min(stream.depth * DEEPER, self._most)
            (hits,) = self._search([stream], depth)
            stream.take(hits, depth)
        if stream.waiting:
            rank, _, score = stream.waiting[0]
            value = -float(rank) if self._by == "rank" else (score - stream.mean) / stream.deviation
            heapq.heappush(self._heap, (-value, rank, stream.number))
