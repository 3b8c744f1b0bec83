"""The batcher against sequential searches: the same results, only to their callers, from a bounded queue."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.hybrid import Answer, Mode
from indexes.interface import BackendUnavailableError, Document, Hits
from linker.engine import Engine
from linker.server.api.batching import Batcher
from linker.server.api.pool import BusyError
from tests.helpers import WORDS, make_engine

Options = tuple[int, Mode]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS[:12]), max_size=4).map(" ".join), max_size=3)
REQUEST = st.tuples(TEXTS, st.sampled_from([1, 3]), st.sampled_from(["hybrid", "dense", "bm25"]))


async def in_thread(call: Callable[[], Answer]) -> Answer:
    return await asyncio.to_thread(call)


def found(*ids: str) -> Answer:
    """Return a result with one hit per text."""
    return Answer([Hits((id_,), np.ones(1, dtype=np.float32)) for id_ in ids], "bm25")


def ids(answer: Answer) -> list[str]:
    return [hits.ids[0] for hits in answer.hits]


class Gated:
    """A search that returns each text itself once it is let through, and records the batches it was given."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.begun, self.gate = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, texts: Sequence[str], options: str) -> Answer:
        self.batches.append(list(texts))
        self.begun.release()
        assert self.gate.acquire(timeout=30)
        if bad := [text for text in texts if text.startswith("bad")]:
            raise ValueError(bad[0])
        if "down" in texts:
            raise BackendUnavailableError("the server is down")
        return found(*texts)

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.acquire, timeout=30)

    def let_through(self, batches: int = 100) -> None:
        self.gate.release(batches)


async def asked(batcher: Batcher[str], *searches: Sequence[str]) -> list[asyncio.Task[Answer]]:
    """Search, each query in its own task that waits in the batcher's queue."""
    tasks = [asyncio.create_task(batcher.search(texts, "")) for texts in searches]
    await asyncio.sleep(0)
    return tasks


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    documents = [Document(f"d{n}", " ".join(WORDS[n % 9 : n % 9 + 3])) for n in range(30)]
    return make_engine(tmp_path_factory.mktemp("batching") / "i", documents)


@given(requests=st.lists(REQUEST, max_size=12), most=st.integers(1, 8))
def test_answers_are_those_of_one_search_after_another(
    engine: Engine, requests: list[tuple[list[str], int, Mode]], most: int
) -> None:
    def search(texts: Sequence[str], options: Options) -> Answer:
        return engine.search(texts, options[0], mode=options[1])

    async def all_at_once() -> list[Answer]:
        batcher = Batcher(search, in_thread, most=lambda: most, window=0)
        return await asyncio.gather(*(batcher.search(texts, (k, mode)) for texts, k, mode in requests))

    for answer, (texts, k, mode) in zip(asyncio.run(all_at_once()), requests, strict=True):
        alone = engine.search(texts, k, mode=mode)
        assert [hits.ids for hits in answer.hits] == [hits.ids for hits in alone.hits]
        for mine, theirs in zip(answer.hits, alone.hits, strict=True):
            np.testing.assert_array_equal(mine.scores, theirs.scores)
        assert (answer.mode, answer.degraded, answer.notes) == (alone.mode, alone.degraded, alone.notes)


async def test_each_caller_gets_its_part_of_probabilities() -> None:
    def search(texts: Sequence[str], options: str) -> Answer:
        hits = [
            replace(one, probabilities=np.array([float(text)]), no_match=float(text))
            for one, text in zip(found(*texts).hits, texts, strict=True)
        ]
        return Answer(hits, "bm25", calibration="x")

    batcher = Batcher(search, in_thread)
    first, *rest = await asked(batcher, ["0"], ["1", "2"], ["3"])
    for task, expected in zip([first, *rest], ([0.0], [1.0, 2.0], [3.0]), strict=True):
        answer = await task
        assert list(answer.no_match) == expected
        assert [p.tolist() for p in answer.probabilities or ()] == [[p] for p in expected]
    assert batcher.batches < batcher.searches == 3


async def test_a_lone_search_begins_at_once_and_those_that_wait_go_together() -> None:
    gated = Gated()
    batcher = Batcher(gated, in_thread, window=0, most=lambda: 4)
    (first,) = await asked(batcher, ["a"])
    await gated.has_begun()
    rest = await asked(batcher, ["b"], ["c", "d"], ["e", "f"], ["g"] * 6, ["h"])
    assert batcher.waiting == 5
    gated.let_through()
    answers = await asyncio.gather(first, *rest)
    assert [ids(a) for a in answers] == [["a"], ["b"], ["c", "d"], ["e", "f"], ["g"] * 6, ["h"]]
    assert gated.batches == [["a"], ["b", "c", "d"], ["e", "f"], ["g"] * 6, ["h"]]
    assert (batcher.waiting, batcher.batches, batcher.searches) == (0, 5, 6)


async def test_after_a_batch_of_several_the_next_waits_for_as_many() -> None:
    gated = Gated()
    batcher = Batcher(gated, in_thread, window=60)  # effectively forever: only a full batch ends it
    (first,) = await asked(batcher, ["a"])
    await gated.has_begun()
    rest = await asked(batcher, ["b"], ["c"])
    gated.let_through()
    await asyncio.gather(first, *rest)
    (again,) = await asked(batcher, ["d"])
    await asyncio.sleep(0.01)
    assert len(gated.batches) == 2
    (filling,) = await asked(batcher, ["e"])
    await asyncio.gather(again, filling)
    assert gated.batches == [["a"], ["b", "c"], ["d", "e"]]


async def test_the_window_ends_without_more_searches() -> None:
    gated = Gated()
    batcher = Batcher(gated, in_thread, window=0.001)
    gated.let_through()
    await asyncio.gather(*await asked(batcher, ["a"], ["b"], ["c"]))
    (late,) = await asked(batcher, ["d"])
    assert ids(await asyncio.wait_for(late, 30)) == ["d"]


async def test_an_error_reaches_only_its_caller_and_an_unavailable_backend_is_asked_once_for_all() -> None:
    gated = Gated()
    batcher = Batcher(gated, in_thread)
    (first,) = await asked(batcher, ["a"])
    await gated.has_begun()
    good, bad, other = await asked(batcher, ["b"], ["bad"], ["c"])
    gated.let_through()
    answers = await asyncio.gather(first, good, bad, other, return_exceptions=True)
    assert [ids(a) for a in answers if isinstance(a, Answer)] == [["a"], ["b"], ["c"]]
    assert isinstance(answers[2], ValueError)
    gated = Gated()
    batcher = Batcher(gated, in_thread)
    (first,) = await asked(batcher, ["a"])
    await gated.has_begun()
    rest = await asked(batcher, ["b"], ["down"])
    gated.let_through()
    _, *failed = await asyncio.gather(first, *rest, return_exceptions=True)
    assert [type(error) for error in failed] == [BackendUnavailableError] * 2
    assert len(gated.batches) == 2


async def test_a_caller_that_gives_up_disturbs_nobody() -> None:
    gated = Gated()
    batcher = Batcher(gated, in_thread, window=0)
    (running,) = await asked(batcher, ["a"])
    await gated.has_begun()
    waits, gives_up = await asked(batcher, ["b"], ["c"])
    running.cancel()
    gives_up.cancel()
    await asyncio.sleep(0)
    assert batcher.waiting == 1
    gated.let_through()
    assert ids(await waits) == ["b"]
    assert gated.batches == [["a"], ["b"]]  # texts that nobody waits for are not searched


async def test_a_full_queue_refuses_more_and_takes_them_later() -> None:
    gated = Gated()
    batcher = Batcher(gated, in_thread, capacity=2)
    (first,) = await asked(batcher, ["a"])
    await gated.has_begun()
    rest = await asked(batcher, ["b"], ["c"])
    with pytest.raises(BusyError, match="2 searches are waiting"):
        await batcher.search(["d"], "other options")
    gated.let_through()
    await asyncio.gather(first, *rest)
    assert ids(await batcher.search(["d"], "")) == ["d"]


async def test_other_options_do_not_wait() -> None:
    gated = Gated()
    batcher = Batcher(gated, in_thread)
    slow = asyncio.create_task(batcher.search(["slow"], "deep"))
    await gated.has_begun()
    quick = asyncio.create_task(batcher.search(["quick"], "shallow"))
    await gated.has_begun()  # while the first one runs
    gated.let_through()
    assert [ids(a) for a in await asyncio.gather(slow, quick)] == [["slow"], ["quick"]]
