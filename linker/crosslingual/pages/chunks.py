"""Applying a function to many texts, in order, and in one process per core if that pays off."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

from indexes.cores import cores

S = TypeVar("S")
T = TypeVar("T")
CHUNK = 2000  # texts given to a process at a time
MANY = 20_000  # minimum number of texts to start processes, which costs as much as a few thousand texts
AHEAD = 2  # queued chunks per process
_functions: list[Callable[[Sequence[str]], Any]] = []  # in a worker process: the function it computes


def in_chunks(
    function: Callable[[Sequence[str]], T], texts: Sequence[str], *, many: int = MANY, jobs: int | None = None
) -> Iterator[T]:
    """Yield `function` of each chunk of `texts`, in order.

    With at least `many` texts, `jobs` processes (default: one per core) do the work. The function must then be
    picklable, such as a module's function or a `functools.partial` of one. Each process gets it once, and a few chunks
    are in memory at a time.
    """
    chunks = (texts[begin : begin + CHUNK] for begin in range(0, len(texts), CHUNK))
    jobs = jobs or cores()
    if jobs == 1 or len(texts) < many:
        yield from map(function, chunks)
        return
    # Not forked, since a fork may copy a lock that a library's thread holds.
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(function,)) as pool:
        yield from in_order(pool, _call, chunks, jobs * AHEAD)


def in_order(pool: Executor, function: Callable[[S], T], arguments: Iterable[S], ahead: int) -> Iterator[T]:
    """Yield `function` of each argument, in order, computed by the pool; at most `ahead` + 1 values are in memory."""
    waiting: deque[Future[T]] = deque()
    for argument in arguments:
        waiting.append(pool.submit(function, argument))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _begin(function: Callable[[Sequence[str]], Any]) -> None:
    _functions.append(function)


def _call(texts: Sequence[str]) -> Any:
    return _functions[0](texts)
