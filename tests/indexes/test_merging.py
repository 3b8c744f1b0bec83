"""Background merges: the same documents, rows and results in fewer segments, whatever is committed meanwhile."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from indexes import carrying, merging
from indexes.collection import Collection
from indexes.disk import faults
from indexes.interface import DamagedError, Document
from indexes.store import manifest as manifests
from indexes.store.records import BuildRecord, Manifest
from indexes.text.parameters import Bm25Parameters, Field
from indexes.writer import Writer
from linker.engine.engine import Engine
from tests.faults.support import assert_tidy

TINY = carrying.MergeLimits(1, 1, 1 << 40)
FIELDS = Bm25Parameters(fields=(Field("title"), Field("text")))


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let no commit merge anything, so that three segments are enough for a background merge."""
    with mock.patch.multiple(carrying, ROWS=TINY, POSTINGS=TINY, TOKENS=TINY, SETTLED=2):
        yield


def documents(first: int, count: int = 3) -> list[Document]:
    return [
        Document(f"d{n}", f"rain number{n} word{n % 5}", f"title {n}") for n in range(first, first + count)
    ]


def add(directory: Path, first: int) -> None:
    with Writer.open(directory) as writer:
        writer.add(documents(first), None)
        writer.commit()


def remove(directory: Path, *ids: str) -> None:
    with Writer.open(directory) as writer:
        writer.remove(ids)
        writer.commit()


@pytest.fixture(params=[Bm25Parameters(), FIELDS], ids=["text", "fields"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An index of four segments with one document removed."""
    out = tmp_path / "i"
    with Writer.create(out, Manifest(bm25=request.param, positions=True)) as writer:
        writer.commit(BuildRecord())
    for first in range(0, 12, 3):
        add(out, first)
    remove(out, "d4")
    return out


def state(collection: Collection) -> object:
    hits = collection.hybrid.search(["rain word1", "number7"], 20).hits
    texts = [collection.documents[row] for row in range(len(collection.rows.ids))]
    return texts, collection.rows.dead.tolist(), [(h.ids, h.scores.tolist()) for h in hits], collection.fields


def merge(directory: Path) -> tuple[bool, list[Collection]]:
    opened = [Collection.open(directory)]
    done = merging.merge(lambda: opened[-1], lambda commit: opened.extend(filter(None, [commit()])))
    return done, opened


def during(point: str, act: Callable[[], None]) -> contextlib.AbstractContextManager[object]:
    """Run an action once, when a merge reaches a point."""
    acts = [act]

    def there(name: str) -> None:
        if name == point and acts:
            acts.pop()()

    return mock.patch.object(faults, "point", there)


def test_a_merge_changes_nothing_but_the_number_of_segments(directory: Path) -> None:
    before = state(Collection.open(directory))
    done, (old, new) = merge(directory)
    assert done
    assert [segment.rows for segment in new.manifest.segments] == [12]
    assert {len(segments) for _, segments, *_ in merging._texts(new)} == {1}
    assert state(old) == state(new) == state(Collection.open(directory)) == before
    assert new.manifest == manifests.load(directory)
    assert_tidy(directory)
    assert not merge(directory)[0]
    add(directory, 12)
    assert len(Collection.open(directory, before=new)) == 14


def test_what_is_committed_during_a_merge_stays(directory: Path) -> None:
    def others() -> None:
        add(directory, 12)
        remove(directory, "d1", "d13")

    with during("merge.text", others):
        merged, opened = merge(directory)
    assert merged
    assert len(opened) == 1  # a different generation from the open one
    collection = Collection.open(directory)
    assert [segment.rows for segment in collection.manifest.segments] == [12, 3]
    assert [d.id for d in collection.matching()] == [f"d{n}" for n in range(15) if n not in (1, 4, 13)]
    assert collection.hybrid.search(["number12"], 1).hits[0].ids == ("d12",)
    assert_tidy(directory)


def test_a_merge_of_segments_that_are_gone_is_dropped(directory: Path) -> None:
    def compact() -> None:
        with Writer.open(directory) as writer:
            writer.compact()

    for point in ("merge.documents", "merge.text"):
        with during(point, compact):
            assert not merge(directory)[0]
        assert len(Collection.open(directory)) == 11
        assert_tidy(directory)
        for first in (20, 30):
            add(directory, first)
        remove(directory, *(f"d{n}" for n in (20, 21, 22, 30, 31, 32)))


def test_a_damaged_segment_is_not_merged(directory: Path) -> None:
    opened = Collection.open(directory)
    path = directory / "segments" / opened.manifest.segments[1].name / "documents.jsonl"
    path.write_bytes(path.read_bytes().replace(b"rain", b"rein"))
    with pytest.raises(DamagedError, match=r"documents\.jsonl: content does not match"):
        merging.merge(lambda: opened, lambda _: None)
    assert manifests.load(directory) == opened.manifest


def test_one_process_merges_at_a_time_and_the_next_sweeps(directory: Path) -> None:
    merges: list[bool] = []
    with during("merge.documents", lambda: merges.append(merge(directory)[0])):
        assert merge(directory)[0]
    assert merges == [False]
    folder = directory / "merging" / "segments" / "000000"
    folder.mkdir(parents=True)
    (folder / "ids.txt").write_bytes(b"of a merge that was killed")
    add(directory, 12)
    assert_tidy(directory)


def test_an_engine_merges_while_it_is_searched(directory: Path) -> None:
    with Engine.open(directory) as engine:
        end, failed = threading.Event(), list[Exception]()

        def search() -> None:
            while not end.is_set():
                try:
                    found = engine.search("rain", k=100)
                    assert len(found.hits[0].ids) % 3 == 2  # whole commits
                except Exception as e:
                    failed.append(e)

        searching = threading.Thread(target=search)
        searching.start()
        for first in range(12, 72, 3):
            engine.add(documents(first))
        engine._merger.wait()
        end.set()
        searching.join()
        assert not failed
        assert len(engine) == len(engine.search("rain", k=100).hits[0].ids) == 71
        assert len(engine.collection.manifest.segments) < 6
        assert len(engine.collection.manifest.segments) == len(manifests.load(directory).segments)
    assert_tidy(directory)
    merging.settle(directory)
    assert len(manifests.load(directory).segments) < 6


def test_a_commit_while_a_merge_ends_counts(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    merging_now, goes_on, calls = threading.Event(), threading.Event(), list[int]()

    def found_nothing(*_: object) -> bool:
        calls.append(1)
        merging_now.set()
        assert goes_on.wait(10)
        return False

    monkeypatch.setattr("indexes.merger.merge", found_nothing)
    with Engine.open(directory) as engine:
        engine._merger.start()
        assert merging_now.wait(10)
        engine._merger.start()  # what was committed after the first merge had looked
        goes_on.set()
        engine._merger.wait()
        assert len(calls) == 2
        assert not engine._merger.running
