"""A function of many arguments, computed in threads, with few of its values in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from indexes.cores import cores

S = TypeVar("S")
T = TypeVar("T")


def in_order(
    function: Callable[[S], T], arguments: Iterable[S], workers: int | None = None
) -> Iterator[tuple[S, T]]:
    """Yield each argument and its value, in order, computed in `workers` threads, by default one per core.

    One value more than there are threads is in memory.
    """
    waiting: deque[tuple[S, Future[T]]] = deque()
    workers = workers or cores()
    with ThreadPoolExecutor(workers) as pool:
        for argument in arguments:
            waiting.append((argument, pool.submit(function, argument)))
            if len(waiting) > workers:
                first, value = waiting.popleft()
                yield first, value.result()
        for first, value in waiting:
            yield first, value.result()
