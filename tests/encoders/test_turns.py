"""Turns at an encoder: the least work first, ties in order of arrival, and one at a time."""

from __future__ import annotations

import threading
import time

from linker.encoders.opened import Turns


def _order(sizes: list[int]) -> list[int]:
    """Return the order in which threads waiting with these amounts of work are admitted, by position in the list."""
    turns = Turns()
    order: list[int] = []
    inside: list[int] = []

    def work(place: int) -> None:
        with turns.of(sizes[place]):
            inside.append(place)
            time.sleep(0.002)
            assert inside == [place]
            inside.pop()
            order.append(place)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(sizes))]
    with turns.of(10**6):
        for number, thread in enumerate(threads, 1):
            thread.start()
            while len(turns._waiting) < number:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return order


def test_the_least_work_comes_first() -> None:
    assert _order([9000, 50, 700, 3, 9001]) == [3, 1, 2, 0, 4]


def test_equals_come_in_the_order_in_which_they_came() -> None:
    assert _order([5] * 8) == list(range(8))


def test_a_failure_inside_lets_the_next_one_in() -> None:
    turns = Turns()
    try:
        with turns.of(1):
            raise ValueError
    except ValueError:
        pass
    with turns.of(1):
        pass
