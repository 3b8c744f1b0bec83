"""Threads for what would hold up the event loop, shared fairly by those whose requests are answered."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

from linker.base.errors import LinkerError

T = TypeVar("T")
OWNER: ContextVar[str] = ContextVar("owner", default="")  # whose request is answered


class BusyError(LinkerError):
    """More searches wait than the server takes; the caller may ask again later."""


@dataclasses.dataclass(eq=False, slots=True)
class _Call:
    """A call, and where its result is waited for."""

    call: Callable[[], Any]
    owner: str
    future: asyncio.Future[Any]


class FairPool:
    """Calls of several owners take turns, and one never has all threads; beyond `waiting` of one, more are refused.

    Only one event loop may use it.
    """

    def __init__(self, threads: int, waiting: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._threads, self._share = threads, max(1, threads - 1)
        self.waiting = waiting
        self._queues: OrderedDict[str, deque[_Call]] = OrderedDict()  # who had a turn last is last
        self._held: Counter[str] = Counter()  # calls of an owner that run or wait
        self._running: Counter[str] = Counter()

    @property
    def pending(self) -> int:
        """How many calls run or wait."""
        return self._held.total()

    async def run(self, call: Callable[[], T]) -> T:
        """Return the result of a call in a thread. Raises BusyError if too many of its owner wait already.

        Where the caller gives up, a call that has begun runs to its end, and counts until then.
        """
        owner = OWNER.get()
        if self._held[owner] >= self._threads + self.waiting:
            raise BusyError("too many requests wait for an answer: try again later")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._held[owner] += 1
        self._queues.setdefault(owner, deque()).append(_Call(call, owner, future))
        self._begin()
        return await future

    async def run_each(self, calls: Iterable[Callable[[], T]]) -> list[T]:
        """Return the results of calls one after another; others have turns between them, and giving up ends them."""
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
            inner = asyncio.get_running_loop().run_in_executor(self._executor, one.call)
            inner.add_done_callback(functools.partial(self._ended, one))

    def _ended(self, one: _Call, inner: asyncio.Future[Any]) -> None:
        self._running[one.owner] -= 1
        self._release(one)
        error = None if inner.cancelled() else inner.exception()  # fetched also where nobody waits for it
        if one.future.cancelled():
            pass
        elif inner.cancelled():
            one.future.cancel()
        elif error is not None:
            one.future.set_exception(error)
        else:
            one.future.set_result(inner.result())
        self._begin()

    def _release(self, one: _Call) -> None:
        self._held[one.owner] -= 1
        for counts in (self._held, self._running):
            if not counts[one.owner]:
                del counts[one.owner]

    def close(self) -> None:
        """End the threads when their calls have ended."""
        self._queues.clear()
        self._executor.shutdown(wait=True, cancel_futures=True)
