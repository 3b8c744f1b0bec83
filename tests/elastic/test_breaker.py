"""The circuit breaker, with a clock that the test turns."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.breaker import Breaker, BreakerSettings
from indexes.interface import BackendUnavailableError, Filter, IndexesError, RowArray, ScoreArray

ANSWER = (np.zeros((1, 1), dtype=np.int64), np.ones((1, 1), dtype=np.float32))


class Side:
    """Fails as it is told and counts how often it was asked."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked = 0

    def search_rows(self, queries: Any, k: int, where: Filter | None = None) -> tuple[RowArray, ScoreArray]:
        self.asked += 1
        if self.error:
            raise self.error
        return ANSWER


class Bench:
    """A breaker that opens after 2 failures for 10 s, at most 40 s, and what belongs to it."""

    def __init__(self) -> None:
        self.side, self.now = Side(), 0.0
        self.breaker = Breaker(self.side, BreakerSettings(2, 10, 40), lambda: self.now)

    def ask(self) -> bool:
        """Search once; say whether the side was asked, and fail unless errors come through."""
        before = self.side.asked
        try:
            self.breaker.search_rows(["q"], 1)
        except BackendUnavailableError as e:
            assert self.side.error or "not asked again" in str(e)
        return self.side.asked > before

    def open(self) -> bool:
        return self.breaker.is_open

    def fail(self) -> None:
        self.side.error = BackendUnavailableError("it is down")


def test_it_opens_after_failures_in_a_row_and_names_the_reason() -> None:
    bench = Bench()
    bench.fail()
    assert bench.ask()
    bench.side.error = None
    assert bench.ask()  # a success in between: the count begins anew
    bench.fail()
    assert bench.ask()
    assert not bench.open()
    assert bench.ask()
    assert bench.open()
    with pytest.raises(BackendUnavailableError, match=r"it is down \(not asked again for 10 s\)"):
        bench.breaker.search_rows(["q"], 1)


def test_one_trial_after_the_pause_closes_it_or_doubles_the_pause() -> None:
    bench = Bench()
    bench.fail()
    bench.ask(), bench.ask()
    for pause in (10, 20, 40, 40):
        bench.now += pause - 1
        assert not bench.ask()
        bench.now += 1
        assert bench.ask()
    bench.now += 40
    bench.side.error = None
    assert bench.ask()
    assert bench.ask()
    assert not bench.open()
    bench.fail()
    bench.ask(), bench.ask()
    bench.now += 10  # the pause is the first one again
    assert bench.ask()


def test_a_callers_mistake_is_no_failure() -> None:
    bench = Bench()
    bench.side.error = IndexesError("k must be at least 1")
    for _ in range(5):
        with pytest.raises(IndexesError):
            bench.breaker.search_rows(["q"], 1)
    bench.side.error = None
    assert bench.ask()
    bench.fail()
    bench.ask(), bench.ask()
    bench.now += 10
    bench.side.error = IndexesError("a mistake in the trial")
    with pytest.raises(IndexesError):
        bench.breaker.search_rows(["q"], 1)
    bench.side.error = None
    assert bench.ask()  # the mistake used up no trial


def test_one_thread_tries_while_the_others_are_told_at_once() -> None:
    bench = Bench()
    bench.fail()
    bench.ask(), bench.ask()
    bench.now += 10
    bench.side.error = None
    entered, leave = threading.Event(), threading.Event()

    def slow(queries: Any, k: int, where: Filter | None = None) -> tuple[RowArray, ScoreArray]:
        entered.set()
        assert leave.wait(30)
        return ANSWER

    bench.side.search_rows = slow  # type: ignore[method-assign]  # the trial hangs until the test lets it go
    with ThreadPoolExecutor(1) as pool:
        trial = pool.submit(bench.breaker.search_rows, ["q"], 1)
        assert entered.wait(30)
        with pytest.raises(BackendUnavailableError, match="not asked again"):
            bench.breaker.search_rows(["q"], 1)
        leave.set()
        assert trial.result() is ANSWER
    assert not bench.open()


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 50))))
def test_a_side_that_is_down_is_asked_rarely_and_one_that_is_up_answers_after_the_longest_pause(
    events: list[tuple[bool, float]],
) -> None:
    bench = Bench()
    asked: list[float] = []
    for down, step in events:
        bench.now += step
        bench.side.error = BackendUnavailableError("down") if down else None
        was_open = bench.open()
        if bench.ask() and was_open:
            asked.append(bench.now)
    bench.side.error = None
    bench.now += 40
    assert bench.ask()
    assert not bench.open()
    for a, b in itertools.pairwise(asked):
        assert b - a >= 10  # trials are a pause apart
