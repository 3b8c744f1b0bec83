"""Threads for work that would block the event loop, shared fairly among the owners of requests."""

import asyncio
import dataclasses
import functools
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from linker.base.errors import LinkerError

T = TypeVar("T")
WorkT = TypeVar("WorkT")
OWNER: ContextVar[str] = ContextVar("owner", default="")  # token name or address of the current client


class BusyError(LinkerError):
    """Too many requests are waiting; the caller may retry later."""


@dataclasses.dataclass(eq=False, slots=True)
class Waiting(Generic[WorkT, T]):
    """Queued work of one owner, with a future for its result; the caller may give up waiting for it."""

    work: WorkT
    owner: str = dataclasses.field(default_factory=OWNER.get)
    future: asyncio.Future[T] = dataclasses.field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def answer(self, result: T) -> None:
        """Set the result, unless the caller has given up."""
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Raise the error in the caller, unless it has given up."""
        if not self.future.done():
            self.future.set_exception(error)


_Call = Waiting[Callable[[], Any], Any]


class FairPool:
    """A thread pool in which owners take turns and none gets all threads; beyond `waiting` waiting calls per owner,
    calls are refused.

    Only one event loop may use it.
    """

    def __init__(self, threads: int, waiting: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._threads, self._share = threads, max(1, threads - 1)
        self.waiting = waiting
        self._queues: OrderedDict[str, deque[_Call]] = (
            OrderedDict()
        )  # the most recently served owner is at the end
        self._counts: Counter[str] = Counter()  # number of running or waiting calls per owner
        self._running: Counter[str] = Counter()

    @property
    def pending(self) -> int:
        """The number of calls running or waiting."""
        return self._counts.total()

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call` in a thread and return its result. Raises BusyError if too many of its owner's calls wait.

        If the caller gives up, a call that has begun still runs to its end, and counts until then.
        """
        one = Waiting[Callable[[], T], T](call)
        if self._counts[one.owner] >= self._threads + self.waiting:
            raise BusyError("too many requests are waiting: try again later")
        self._counts[one.owner] += 1
        self._queues.setdefault(one.owner, deque()).append(one)
        self._begin()
        return await one.future

    async def run_each(self, calls: Iterable[Callable[[], T]]) -> list[T]:
        """Run calls one after another, with turns for others in between; if the caller gives up, skip the rest."""
        return [await self.run(call) for call in calls]

    def _begin(self) -> None:
        while self._running.total() < self._threads:
            owner = next((o for o in self._queues if self._running[o] < self._share), None)
            if owner is None:
                return
            one = self._queues[owner].popleft()
            self._queues.move_to_end(owner)
            if not self._queues[owner]:
                del self._queues[owner]
            if one.future.cancelled():
                self._release(one)
                continue
            self._running[owner] += 1
            inner = asyncio.get_running_loop().run_in_executor(self._executor, one.work)
            inner.add_done_callback(functools.partial(self._finish, one))

    def _finish(self, one: _Call, inner: asyncio.Future[Any]) -> None:
        self._running[one.owner] -= 1
        self._release(one)
        # retrieve the error even if nobody waits for it: otherwise asyncio would log it
        error = None if inner.cancelled() else inner.exception()
        if inner.cancelled():
            one.future.cancel()
        elif error is not None:
            one.fail(error)
        else:
            one.answer(inner.result())
        self._begin()

    def _release(self, one: _Call) -> None:
        self._counts[one.owner] -= 1
        for counts in (self._counts, self._running):
            if not counts[one.owner]:
                del counts[one.owner]

    def close(self) -> None:
        """Discard the waiting calls, and end the threads once the running calls have ended."""
        self._queues.clear()
        self._executor.shutdown(wait=True, cancel_futures=True)
