"""Row numbering against a model that is just a list of everything ever added."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from indexes.interface import BadIdError, DuplicateIdError, Filter, IndexesError, Metadata, UnknownIdError
from indexes.rows import Rows

ID = st.sampled_from("abcdef")
VALUE = st.sampled_from(
    [None, "x", "y", 1, 1.5, True, ["x", "y"], ["y", 1], [], {"deep": "x"}, "2021-03", ["1.5", "2021"]]
)
METADATA = st.dictionaries(st.sampled_from(["f", "g"]), VALUE, max_size=2)
FILTERS = [
    Filter.parse(conditions)
    for conditions in (
        ["f=x"], ["f=x", "f=1"], ["f=y", "g=y"], ["g=true"], ["g=1.5"], ["h=x"], ["f=z"], ["f!=x"],
        ["f!=x|1", "g!=y"], ["f>1"], ["f<=1.5", "f>=1"], ["g<2021-04"], ["g>2021"], ["h<1"],
    )
]  # fmt: skip


@dataclass
class Entry:
    id: str
    metadata: Metadata
    alive: bool = True


class RowsAgainstAList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rows = Rows()
        self.model: list[Entry] = []

    def living(self) -> set[str]:
        return {entry.id for entry in self.model if entry.alive}

    @rule(new=st.lists(st.tuples(ID, METADATA), max_size=4))
    def append(self, new: list[tuple[str, Metadata]]) -> None:
        ids, metadata = [id_ for id_, _ in new], [values for _, values in new]
        if len(set(ids)) < len(ids) or self.living() & set(ids):
            with pytest.raises(DuplicateIdError):
                self.rows.append(ids, metadata)
        else:
            assert self.rows.append(ids, metadata) == len(self.model)
            self.model += [Entry(*pair) for pair in new]

    @rule(good=ID, bad=st.sampled_from(["", "a b", "a\n", "\x00", 7]))
    def append_bad(self, good: str, bad: str) -> None:
        with pytest.raises(BadIdError):
            self.rows.append([good, bad])

    @rule(ids=st.lists(ID, max_size=4))
    def remove(self, ids: list[str]) -> None:
        if not set(ids) <= self.living():
            with pytest.raises(UnknownIdError):
                self.rows.remove(ids)
            return
        expected = [row for row, entry in enumerate(self.model) if entry.alive and entry.id in ids]
        assert self.rows.remove(ids).tolist() == expected
        for row in expected:
            self.model[row].alive = False

    @rule()
    def reopen(self) -> None:
        rows = Rows()
        metadata: Iterator[Metadata] = (entry.metadata for entry in list(self.model))
        rows.restore(list(self.rows.ids), self.rows.dead, metadata)
        self.rows = rows

    @rule(where=st.sampled_from([None, *FILTERS]))
    def mask(self, where: Filter | None) -> None:
        mask = self.rows.mask(where)
        expected = [e.alive and (where is None or where.accepts(e.metadata)) for e in self.model]
        assert (mask is None and all(expected)) or (mask is not None and mask.tolist() == expected)

    @rule()
    def locate(self) -> None:
        living = sorted(self.living())
        assert [self.model[row].id for row in self.rows.locate(living)] == living
        assert all(self.model[row].alive for row in self.rows.locate(living))

    @invariant()
    def agrees(self) -> None:
        assert self.rows.ids == [entry.id for entry in self.model]
        assert len(self.rows) == len(self.living())
        assert self.rows.dead.tolist() == [row for row, entry in enumerate(self.model) if not entry.alive]
        assert all((id_ in self.rows) == (id_ in self.living()) for id_ in "abcdef")
        assert self.rows.present(list("abcdef")) == self.living()


TestRowsAgainstAList = RowsAgainstAList.TestCase
TestRowsAgainstAList.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)


def where(text: str) -> Filter:
    parsed = Filter.parse([text])
    assert parsed is not None
    return parsed


def restored(metadata: Callable[[], Iterator[Metadata]]) -> Rows:
    rows = Rows()
    rows.restore(["a", "b", "c"], np.empty(0, dtype=np.int64), metadata())
    return rows


def test_hits_stop_at_the_filling() -> None:
    rows = Rows()
    rows.append(["a", "b", "c"])
    scores = np.array([[0.5, 0.25, 0.1], [0.5, -np.inf, -np.inf]], dtype=np.float32)
    first, second = rows.hits(np.array([[2, 0, 1], [1, -1, -1]]), scores)
    assert (first.ids, second.ids) == (("c", "a", "b"), ("b",))
    assert second.scores.tolist() == [0.5]


def test_a_mask_is_forgotten_when_rows_change() -> None:
    rows = Rows()
    rows.append(["a"], [{"f": "x"}])
    mask = rows.mask(where("f=x"))
    assert mask is not None
    assert rows.mask(where("f=x")) is mask
    with pytest.raises(ValueError, match="read-only"):
        mask[0] = False
    for i in range(100):  # more filters than are kept
        rows.mask(where(f"f={i}"))
    rows.append(["b"], [{"f": "x"}])
    mask = rows.mask(where("f=x"))
    assert mask is not None
    assert mask.tolist() == [True, True]
    rows.remove(["a"])
    mask = rows.mask(where("f=x"))
    assert mask is not None
    assert mask.tolist() == [False, True]


def test_metadata_are_read_at_the_first_filter_only() -> None:
    reads = []

    def metadata() -> Iterator[Metadata]:
        for row in range(3):
            reads.append(row)
            yield {"f": row}

    rows = restored(metadata)
    assert rows.mask() is None
    assert reads == []
    mask = rows.mask(where("f=1"))
    assert mask is not None
    assert mask.tolist() == [False, True, False]
    rows.mask(where("f=2"))
    assert reads == [0, 1, 2]


def test_a_failed_reading_never_answers_by_half() -> None:
    def metadata() -> Iterator[Metadata]:
        yield {"f": 0}
        raise OSError("disk gone")

    rows = restored(metadata)
    with pytest.raises(OSError, match="disk gone"):
        rows.mask(where("f=1"))
    for _ in range(2):
        with pytest.raises(IndexesError, match="expected metadata of 3 documents, got 0"):
            rows.mask(where("f=1"))


def test_threads_may_filter_at_once() -> None:
    started = threading.Barrier(4, timeout=10)

    def metadata() -> Iterator[Metadata]:
        for row in range(3):
            threading.Event().wait(0.01)  # let the others arrive during the read
            yield {"f": row}

    rows, answers = restored(metadata), []

    def ask() -> None:
        started.wait()
        mask = rows.mask(where("f=1"))
        answers.append(None if mask is None else mask.tolist())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [[False, True, False]] * 4
