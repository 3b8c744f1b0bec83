"""The order that does not learn: the candidates of many seeds are merged on demand, to any depth."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from indexes.hybrid import Answer
from indexes.interface import Hits
from linker.base.errors import InputError
from linker.review.interface import Candidate, Judgement, Order, Seed
from linker.review.learning.doubts import log_odds
from linker.review.population import Population
from linker.review.settings import Settings
from linker.review.stopping.expected import LinkReads, LinksLeft

if TYPE_CHECKING:
    from linker.engine.engine import Engine

FIRST = 32  # candidates kept per seed after the first search
DEEPER = 4  # factor by which the search depth grows when a seed's candidates are used up
BATCH = 256  # seeds searched at a time
MOMENTS = 100  # candidates used for a seed's mean and deviation, and to estimate the links left
USUAL = 4.0  # standard deviations above its seed's mean at which a candidate is a link with probability 1/2


class Queue(Order, Protocol):
    """An order in the form that a review needs: it has a fingerprint, and can be prepared and restarted."""

    @property
    def version(self) -> str:
        """The fingerprint of the ordering, for `Judgement.model`."""

    @property
    def degraded(self) -> str:
        """The unavailable component, or an empty string (see `Answer.degraded`)."""

    def restart(self) -> None:
        """Forget all judgements. A document that was handed out may come again."""

    def prepare(self) -> object:
        """Do the work that the first `next` would otherwise have to wait for."""

    def total(self, seed: str) -> int | None:
        """Return how many candidates a seed has; None if every document is a candidate."""


Held = tuple[int, str, float, float | None]  # rank, document, score, probability


class _Stream:
    """The candidates of one seed, best first; those not yet handed out are kept, up to a depth."""

    def __init__(self, number: int, seed: Seed) -> None:
        self.number, self.seed = number, seed
        self.depth = 0  # depth of the last search
        self.ended = False
        self.mean, self.deviation = 0.0, 1.0
        self.values = np.zeros(0)  # values of its first MOMENTS candidates, best first
        self.waiting: deque[Held] = deque()
        self.handed_out: set[str] = set()

    def take(self, hits: Hits, depth: int, *, sort: bool) -> None:
        """Keep a search's candidates that were not handed out; from the first search, only the top FIRST.

        With `sort`, the most probable come first.
        """
        if not self.depth and len(hits):
            scores = hits.scores[:MOMENTS]
            self.mean, self.deviation = float(scores.mean()), float(scores.std()) or 1.0
        keep = len(hits) if self.depth else min(FIRST, len(hits))
        ranked = zip(
            range(1, keep + 1), hits.ids[:keep], hits.scores[:keep].tolist(), _known(hits, keep), strict=True
        )
        held = [candidate for candidate in ranked if candidate[1] not in self.handed_out]
        self.waiting = deque(sorted(held, key=lambda c: -(c[3] or 0)) if sort else held)
        self.ended = keep == len(hits) < depth
        self.depth = depth if keep == len(hits) else keep

    def value(self, score: float, probability: float | None) -> float:
        """Return how likely a candidate is a link, in log odds: from P(link) if known, else from its z-score."""
        return (score - self.mean) / self.deviation - USUAL if probability is None else log_odds(probability)


def _known(hits: Hits, count: int) -> list[float | None]:
    p = hits.probabilities
    return [None] * min(count, len(hits)) if p is None else np.nan_to_num(p[:count]).tolist()


class MergedOrder:
    """The best candidate of each seed, merged by a value that is comparable across seeds.

    Settings.order "probability": P(link) from the index's calibration or ranker. "z": how many standard deviations a
    score is above the mean of the seed's first MOMENTS. In pairs, a model of the reads adjusts both values for the
    candidate's rank and for whether its seed has a link (see `linker.review.stopping.expected`). "rank": every seed's
    first candidate, then every seed's second. In a topic, each document comes once. With `per_seed`, a seed is done
    when `until` relevant documents have been found for it. Memory is proportional to the numbers of seeds and of
    documents handed out. Raises InputError if the order needs probabilities and the index has none.
    """

    def __init__(
        self, engine: Engine, seeds: Sequence[Seed], settings: Settings, population: Population
    ) -> None:
        self._engine, self._settings, self._population = engine, settings, population
        self._where = engine.filter(settings.where)
        self._most = max(1, len(engine))
        search = engine.collection.manifest.search
        self._calibrated = bool(search.get("calibration") or search.get("ranker"))
        self._by = settings.order or ("probability" if self._calibrated else "z")
        if not self._calibrated and (self._by == "probability" or settings.threshold is not None):
            raise InputError(
                f"{engine.directory} has no calibration, so P(link) is not known: fit one with "
                "`linker calibrate`, or order by z or rank and give a score instead of a probability"
            )
        self._streams = [_Stream(number, seed) for number, seed in enumerate(seeds)]
        self._seed_documents = set(population.documents.values())
        self._excluded: set[tuple[str, str]] = set()
        self._relevant: dict[str, set[str]] = {}  # relevant documents by seed
        self._numbers = {seed.id: number for number, seed in enumerate(seeds)}
        self._reads = LinkReads()
        self._heap: list[tuple[float, int, int]] = []  # −value, rank, stream number
        # the heap is stale if its values are those of an earlier model
        self._started = self._is_stale = False
        self._last: _Stream | None = None  # stream of the last candidate, not on the heap
        self.degraded = ""
        self.version = f"merged by {self._by}, generation {engine.collection.manifest.generation}"

    def next(self) -> Candidate | None:
        """Return the best candidate left, or None at the end. Raises the same errors as a search."""
        self.prepare()
        self._fit()
        if self._is_stale:
            self._refill()
        while True:
            if self._last is not None:
                self._push(self._last)
            if not self._heap:
                self._last = None
                return None
            self._last = stream = self._streams[heapq.heappop(self._heap)[2]]
            rank, id_, score, probability = stream.waiting.popleft()
            stream.handed_out.add(id_)
            key = self._key(stream.seed.id, id_)
            if key not in self._excluded and id_ not in self._left_out(stream.seed.id):
                self._excluded.add(key)
                return Candidate(stream.seed.id, id_, score, rank, probability)

    def tell(self, judgement: Judgement) -> None:
        """Exclude the document from now on; record a find and, in pairs, pass a read from the queue to the model."""
        key = self._key(judgement.seed, judgement.id)
        self._excluded.add(key)
        number = self._numbers.get(judgement.seed)
        if self._settings.unit == "pairs" and number is not None and judgement.phase == "queue":
            self._reads.add(number, judgement.score, judgement.probability, is_link=judgement.relevant)
        if judgement.relevant:
            self._relevant.setdefault(judgement.seed, set()).add(judgement.id)

    def restart(self) -> None:
        """Forget the judgements. Candidates of a seed that were handed out do not come again."""
        self._excluded.clear()
        self._relevant.clear()
        self._reads = LinkReads()
        if self._started:
            self._refill()

    def prepare(self) -> None:
        """Search for all seeds, once."""
        if not self._started:
            self._start()

    def left(self) -> LinksLeft | None:
        """Return how many links are expected among the unread; None before the seeds are searched or with few reads."""
        if not self._started:
            return None
        self._fit()
        deeper = [len(s.values) == MOMENTS and not s.ended for s in self._streams]
        return self._reads.left([s.values for s in self._streams], deeper)

    def _fit(self) -> None:
        if self._reads.fit(lambda number, *known: self._value(self._streams[number], *known)):
            self._is_stale = True

    def _refill(self) -> None:
        """Rebuild the heap from all seeds' next candidates."""
        self._heap, self._last, self._is_stale = [], None, False
        for stream in self._streams:
            self._push(stream)

    def _value(self, stream: _Stream, score: float, probability: float | None) -> float:
        return stream.value(score, None if self._by == "z" else probability)

    def total(self, seed: str) -> int:
        """Return the total number of a seed's candidates. Raises KeyError if there is no such seed."""
        number = {stream.seed.id: stream.number for stream in self._streams}[seed]
        (hits,) = self._search([self._streams[number]], self._most).hits
        return sum(id_ not in self._left_out(seed) for id_ in hits.ids)

    def _left_out(self, seed: str) -> set[str]:
        """Return the documents that are not candidates of a seed because they are seeds themselves."""
        documents = self._population.documents
        return {documents.get(seed, "")} if self._settings.unit == "pairs" else self._seed_documents

    def _key(self, seed: str, id_: str) -> tuple[str, str]:
        return (seed if self._settings.unit == "pairs" else "", id_)

    def _start(self) -> None:
        self._started = True
        for start in range(0, len(self._streams), BATCH):
            part = self._streams[start : start + BATCH]
            self._fetch(part, min(max(FIRST, MOMENTS), self._most))
            for stream in part:
                self._push(stream)

    def _fetch(self, streams: Sequence[_Stream], depth: int) -> None:
        """Fill streams with the candidates of a search of this depth."""
        answer = self._search(streams, depth, probabilities=self._calibrated)
        for stream, hits in zip(streams, answer.hits, strict=True):
            is_first = not stream.depth
            stream.take(hits, depth, sort=self._by == "probability")
            if is_first:
                known = zip(hits.scores[:MOMENTS].tolist(), _known(hits, MOMENTS), strict=True)
                stream.values = np.sort([self._value(stream, *one) for one in known])[::-1]

    def _search(self, streams: Sequence[_Stream], depth: int, *, probabilities: bool = False) -> Answer:
        texts = [stream.seed.full_text for stream in streams]
        answer = self._engine.search(
            texts, depth, mode=self._settings.mode, where=self._where, probabilities=probabilities
        )
        self.degraded = self.degraded or answer.degraded
        return answer

    def _push(self, stream: _Stream) -> None:
        """Put the stream's next candidate on the heap, after a deeper search if none is left."""
        settings = self._settings
        until = settings.until if settings.per_seed else None
        if until is not None and len(self._relevant.get(stream.seed.id, ())) >= until:
            return
        while not stream.waiting and not stream.ended:
            stream.ended = stream.depth >= self._most
            if not stream.ended:
                self._fetch([stream], min(stream.depth * DEEPER, self._most))
        if not stream.waiting:
            return
        rank, _, score, probability = stream.waiting[0]
        if (settings.score is not None and score < settings.score) or (
            settings.threshold is not None and (probability or 0) < settings.threshold
        ):
            return
        value = -float(rank)
        if self._by != "rank":
            value = self._reads.log_odds(stream.number, self._value(stream, score, probability))
        heapq.heappush(self._heap, (-value, rank, stream.number))
