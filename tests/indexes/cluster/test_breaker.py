"""The circuit breaker, in front of a backend that the test makes fail, hang and respond."""

import contextlib
import gc
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from indexes.cluster.breaker import Breaker, BreakerSettings
from indexes.interface import BackendUnavailableError, Filter, IndexesError, RowArray, ScoreArray

ANSWER = (np.zeros((1, 1), dtype=np.int64), np.ones((1, 1), dtype=np.float32))
SECONDS = 60.0  # no test waits this long unless it fails


class Side:
    """Fails on request and counts its calls; a ping waits until the test allows it."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked = 0
        self.allowed, self.pinged = threading.Semaphore(0), threading.Semaphore(0)

    def search_rows(self, queries: Any, k: int, where: Filter | None = None) -> tuple[RowArray, ScoreArray]:
        self.asked += 1
        self.raise_error()
        return ANSWER

    def ping(self) -> None:
        assert self.allowed.acquire(timeout=SECONDS)
        self.pinged.release()
        self.raise_error()

    def raise_error(self) -> None:
        if self.error:
            # a new exception: a traceback would hold on to the breaker
            raise type(self.error)(*self.error.args)


class Bench:
    """A breaker that opens after 2 failures, and the backend that it protects."""

    def __init__(self) -> None:
        self.side = Side()
        self.breaker = Breaker(self.side, BreakerSettings(2, pause=0.001))

    def ask(self) -> bool:
        """Search once; return whether the backend was called, and fail unless errors come through."""
        before = self.side.asked
        try:
            self.breaker.search_rows(["q"], 1)
        except BackendUnavailableError as e:
            assert self.side.error or "no further requests" in str(e)
        return self.side.asked > before

    def open(self) -> bool:
        return self.breaker.is_open

    def fail(self) -> None:
        self.side.error = BackendUnavailableError("it is down")

    def let_ping(self, times: int = 1) -> None:
        """Let the thread ping and wait until it has."""
        for _ in range(times):
            self.side.allowed.release()
            assert self.side.pinged.acquire(timeout=SECONDS)

    def until_trial(self) -> None:
        """Let the thread ping a backend that is up, and wait for the trial that follows."""
        self.let_ping()
        join_pingers()


def pingers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "breaker"]


def join_pingers() -> None:
    for thread in pingers():
        thread.join(SECONDS)
        assert not thread.is_alive()


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.side.error = None
    bench.side.allowed.release(1000)
    join_pingers()


def test_it_opens_after_failures_in_a_row_and_names_the_reason(bench: Bench) -> None:
    bench.fail()
    assert bench.ask()
    bench.side.error = None
    assert bench.ask()  # a success in between restarts the count
    bench.fail()
    assert bench.ask()
    assert not bench.open()
    assert not pingers()
    assert bench.ask()
    assert bench.open()
    with pytest.raises(
        BackendUnavailableError, match=r"it is down \(no further requests until it answers a ping"
    ):
        bench.breaker.search_rows(["q"], 1)


def test_searches_do_not_wait_for_a_ping_and_none_is_asked_before_one_is_answered(bench: Bench) -> None:
    bench.fail()
    bench.ask(), bench.ask()
    for _ in range(5):
        assert not any(bench.ask() for _ in range(100))  # a ping hangs meanwhile
        bench.let_ping()
    assert len(pingers()) == 1
    bench.side.error = None
    bench.until_trial()
    assert bench.open()
    assert bench.ask()  # the trial
    assert not bench.open()
    assert bench.ask()
    assert not pingers()
    bench.fail()
    bench.ask(), bench.ask()
    assert bench.open()
    assert len(pingers()) == 1


def test_a_failed_trial_goes_back_to_pings(bench: Bench) -> None:
    bench.fail()
    bench.ask(), bench.ask()
    for _ in range(10):  # pings are answered, searches are not
        bench.side.error = None
        bench.until_trial()
        bench.fail()
        assert bench.ask()
        assert not bench.ask()
        assert len(pingers()) == 1


def test_a_callers_mistake_is_no_failure(bench: Bench) -> None:
    bench.side.error = IndexesError("k must be at least 1")
    for _ in range(5):
        with pytest.raises(IndexesError):
            bench.breaker.search_rows(["q"], 1)
    bench.side.error = None
    assert bench.ask()
    bench.fail()
    bench.ask(), bench.ask()
    bench.side.error = None
    bench.until_trial()
    bench.side.error = IndexesError("a mistake in the trial")
    with pytest.raises(IndexesError):
        bench.breaker.search_rows(["q"], 1)
    bench.side.error = None
    assert bench.ask()  # the mistake did not use up a trial
    assert not bench.open()


@contextlib.contextmanager
def hanging(bench: Bench) -> Iterator[None]:
    """Let a search hang, in another thread, until the block ends; then it is answered."""
    entered, leave = threading.Event(), threading.Event()

    def slow(queries: Any, k: int, where: Filter | None = None) -> tuple[RowArray, ScoreArray]:
        entered.set()
        assert leave.wait(SECONDS)
        return ANSWER

    bench.side.search_rows = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        search = pool.submit(bench.breaker.search_rows, ["q"], 1)
        assert entered.wait(SECONDS)
        try:
            yield
        finally:
            leave.set()
        assert search.result() is ANSWER


def test_one_thread_tries_while_the_others_are_told_at_once(bench: Bench) -> None:
    bench.fail()
    bench.ask(), bench.ask()
    bench.side.error = None
    bench.until_trial()
    with hanging(bench):
        with pytest.raises(BackendUnavailableError, match="no further requests"):
            bench.breaker.search_rows(["q"], 1)
        assert not pingers()  # no ping is needed while the trial runs
    assert not bench.open()


def test_the_thread_ends_when_a_late_answer_closes_the_circuit(bench: Bench) -> None:
    bench.fail()
    bench.ask()
    quick = bench.side.search_rows
    with hanging(bench):  # a search that began before the circuit opened
        bench.side.search_rows = quick  # type: ignore[method-assign]  # the others are answered at once
        bench.ask()
        assert bench.open()
    assert not bench.open()
    bench.side.allowed.release()  # the ping that may be in flight
    join_pingers()


def test_the_thread_ends_with_the_breaker() -> None:
    bench = Bench()
    bench.fail()
    bench.ask(), bench.ask()
    bench.let_ping()
    assert len(pingers()) == 1
    side, gone = bench.side, weakref.ref(bench.breaker)
    del bench
    side.allowed.release(1)  # a ping in flight keeps it until it ends
    end = time.monotonic() + SECONDS
    while gone() is not None and time.monotonic() < end:
        gc.collect()
        side.allowed.release(1)
        time.sleep(0.01)
    assert gone() is None
    join_pingers()


def test_a_thread_that_is_gone_is_started_again(bench: Bench) -> None:
    bench.fail()
    bench.ask(), bench.ask()
    bench.side.error = None
    bench.let_ping()
    join_pingers()
    bench.breaker._trial = ""  # as found by a child whose parent forked with the circuit open
    assert not bench.ask()
    bench.until_trial()
    assert bench.ask()
    assert not bench.open()
