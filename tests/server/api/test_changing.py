"""Group commit against sequential changes: the same results, in the same order, in fewer commits."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.interface import BadDocumentError, Document, LockedError
from linker.server.api import changing
from linker.server.api.changing import Change, Changes
from linker.server.api.pool import OWNER, BusyError

IDS = st.sampled_from("abc")
CHANGE = st.one_of(IDS, st.builds(Document, IDS, st.sampled_from(["one", "two", "bad"])))


class Store:
    """A dictionary that refuses bad texts, all or nothing, and records the batches it was given."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.batches: list[list[Change]] = []

    def apply(self, changes: Sequence[Change]) -> list[bool]:
        self.batches.append(list(changes))
        if any(isinstance(change, Document) and change.text == "bad" for change in changes):
            raise BadDocumentError("bad")
        had = []
        for change in changes:
            id_ = change if isinstance(change, str) else change.id
            had.append(id_ in self.texts)
            self.texts.pop(id_, None)
            if isinstance(change, Document):
                self.texts[id_] = change.text
        return had


async def in_thread(call: Callable[[], list[bool]]) -> list[bool]:
    return await asyncio.to_thread(call)


async def made(changes: Changes, asked: Sequence[Change]) -> list[object]:
    return await asyncio.gather(*(changes.make(change) for change in asked), return_exceptions=True)


@given(st.lists(CHANGE, max_size=12))
def test_changes_made_together_are_those_made_one_by_one(changes: list[Change]) -> None:
    batched, single, expected = Store(), Store(), list[object]()
    for change in changes:
        try:
            expected += single.apply([change])
        except BadDocumentError as error:
            expected.append(error)
    results = asyncio.run(made(Changes(batched.apply, in_thread, capacity=100), changes))
    assert list(map(repr, results)) == list(map(repr, expected))
    assert batched.texts == single.texts
    assert len(batched.batches) <= 1 + len(changes)


async def test_what_comes_during_a_commit_is_made_together_in_the_next() -> None:
    store, begun, gate = Store(), threading.Event(), threading.Event()

    def apply(changes: Sequence[Change]) -> list[bool]:
        begun.set()
        assert gate.wait(30)
        return store.apply(changes)

    changes = Changes(apply, in_thread, capacity=100)
    first = asyncio.create_task(changes.make(Document("a", "one")))
    await asyncio.to_thread(begun.wait, 30)
    later = [asyncio.create_task(changes.make(Document(id_, "one"))) for id_ in "bcde"]
    await asyncio.sleep(0)
    later.pop().cancel()  # it has not started
    gate.set()
    assert not any(await asyncio.gather(first, *later))
    assert [[change.id for change in batch if isinstance(change, Document)] for batch in store.batches] == [
        ["a"],
        ["b", "c", "d"],
    ]


def test_clients_that_come_again_share_every_commit() -> None:
    store = Store()

    async def client(changes: Changes, id_: str) -> None:
        for _ in range(5):
            await changes.make(id_)

    async def run() -> None:
        changes = Changes(store.apply, in_thread, capacity=100)
        await asyncio.gather(*(client(changes, id_) for id_ in "abcd"))

    with mock.patch.object(changing, "WINDOW", 30):
        asyncio.run(run())
    assert [len(batch) for batch in store.batches] == [4] * 5


def test_an_error_refuses_all_that_were_to_be_made_together() -> None:
    calls = []

    def apply(changes: Sequence[Change]) -> list[bool]:
        calls.append(changes)
        raise LockedError("locked")

    found = asyncio.run(made(Changes(apply, in_thread, capacity=100), ["a", "b", "c"]))
    assert [type(error) for error in found] == [LockedError] * 3
    assert len(calls) == 1

    async def full(call: Callable[[], list[bool]]) -> list[bool]:
        raise BusyError("full")

    found = asyncio.run(made(Changes(Store().apply, full, capacity=100), ["a", "b"]))
    assert [type(error) for error in found] == [BusyError] * 2


async def test_one_owner_cannot_fill_the_queue_of_another() -> None:
    changes = Changes(Store().apply, in_thread, capacity=2)
    tasks = [asyncio.create_task(changes.make("a")) for _ in range(2)]
    await asyncio.sleep(0)
    OWNER.set("other")
    tasks.append(asyncio.create_task(changes.make("a")))
    OWNER.set("")
    with pytest.raises(BusyError):
        await changes.make("a")
    assert not any(await asyncio.gather(*tasks))
