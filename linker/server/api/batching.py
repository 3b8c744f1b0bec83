"""Batch waiting searches into one call of the engine, which encodes, scans and scores them together.

A search that arrives while none is running begins at once. Searches that arrive while one with the same options runs
wait for it to finish and are batched. After a batch of several searches, the next batch waits until as many have
arrived, but no longer than a window, since the same callers often search again at once. Searches with other options,
or by another owner, run in parallel.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from indexes.hybrid import Answer
from indexes.interface import BackendUnavailableError
from linker.server.api.pool import OWNER, BusyError, Waiting

WINDOW = 0.002  # maximum number of seconds that a batch waits for more searches
MOST = 64  # maximum number of texts per batch
CAPACITY = 1024  # maximum waiting searches per owner

OptionsT = TypeVar("OptionsT", bound=Hashable)
Run = Callable[[Callable[[], Answer]], Awaitable[Answer]]


_Search = Waiting[Sequence[str], Answer]


class _Lane:
    """The waiting searches with the same options, in order of arrival."""

    def __init__(self) -> None:
        self.waiting: dict[_Search, None] = {}
        self._wanted = 0
        self._filled = asyncio.Event()

    def put(self, one: _Search) -> None:
        self.waiting[one] = None
        if len(self.waiting) >= self._wanted:
            self._filled.set()

    async def fill(self, wanted: int, window: float) -> None:
        """Wait until `wanted` searches are waiting, for at most `window` seconds."""
        if len(self.waiting) >= wanted:
            return
        self._wanted = wanted
        self._filled.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._filled.wait(), window)

    def take(self, most: int) -> list[_Search]:
        """Remove and return the first searches: at most `most` texts in total, or one search of any size."""
        taken: list[_Search] = []
        for one in self.waiting:
            most -= len(one.work)
            if taken and most < 0:
                break
            taken.append(one)
        for one in taken:
            del self.waiting[one]
        return taken


class Batcher(Generic[OptionsT]):
    """Answers the searches of one event loop in batches.

    Each result equals that of `search` for the caller's texts alone, except for the last digits of scores if an
    encoder's vectors depend on the rest of the batch. An error reaches the caller whose texts raise it; a
    BackendUnavailableError, which no text causes, reaches all callers in the batch.
    """

    def __init__(
        self,
        search: Callable[[Sequence[str], OptionsT], Answer],
        run: Run,
        *,
        window: float = WINDOW,
        most: Callable[[], int] = lambda: MOST,
        capacity: int = CAPACITY,
    ) -> None:
        """Search by `search(texts, options)`, which `run` calls in a thread.

        `window`: maximum seconds that a batch waits for more searches. `most` is called before each batch for its
        maximum number of texts. `capacity`: maximum number of waiting searches per owner.
        """
        self._search, self._run = search, run
        self._window, self._most, self._capacity = window, most, capacity
        self._lanes: dict[tuple[str, OptionsT], _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.batches = 0  # calls of `search` so far
        self.searches = 0  # searches in these batches

    @property
    def waiting(self) -> int:
        """The number of searches waiting to begin."""
        return sum(len(lane.waiting) for lane in self._lanes.values())

    async def search(self, texts: Sequence[str], options: OptionsT) -> Answer:
        """Search for `texts` in a batch. Raises BusyError if too many searches wait, and the errors of `search`."""
        owner = OWNER.get()
        waiting = sum(len(lane.waiting) for (whose, _), lane in self._lanes.items() if whose == owner)
        if waiting >= self._capacity:
            raise BusyError(f"{waiting} searches are waiting: try again later")
        one = _Search(texts)
        lane = self._lanes.get((owner, options))
        if lane is None:
            lane = self._lanes[owner, options] = _Lane()
            task = asyncio.create_task(self._serve(lane, options))
            self._tasks.add(task)  # the event loop itself holds only weak references to tasks
            task.add_done_callback(self._tasks.discard)
        lane.put(one)
        try:
            return await one.future
        finally:
            lane.waiting.pop(one, None)  # do not search for a caller that has given up

    async def _serve(self, lane: _Lane, options: OptionsT) -> None:
        while batch := lane.take(self._most()):
            await self._answer(batch, options)
            if len(batch) > 1:
                await lane.fill(len(batch), self._window)
        # OWNER is still the lane's owner, since a task keeps the context in which it was created
        del self._lanes[OWNER.get(), options]

    async def _answer(self, batch: Sequence[_Search], options: OptionsT) -> None:
        texts = [text for one in batch for text in one.work]
        self.batches += 1
        self.searches += len(batch)
        try:
            answer = await self._run(lambda: self._search(texts, options))
        except Exception as error:
            if len(batch) > 1 and not isinstance(error, BackendUnavailableError):
                for one in batch:
                    await self._answer([one], options)
                return
            for one in batch:
                one.fail(error)
            return
        start = 0
        for one in batch:
            one.answer(dataclasses.replace(answer, hits=answer.hits[start : start + len(one.work)]))
            start += len(one.work)
