"""One engine over time: commits of other processes, many threads, closing, and waiting for another writer."""

import multiprocessing
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from indexes import dropping
from indexes.disk.writing import FileRecord
from indexes.interface import Document, IndexesError, LockedError, UnknownIdError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store.records import Manifest
from indexes.writer import Writer
from linker.encoders import opened
from linker.engine import Engine, building
from linker.engine.following import Retiring
from linker.engine.snapshot import Snapshot
from tests.helpers import HashEncoder, make_engine

CONTEXT = multiprocessing.get_context("spawn")


def make(directory: Path, encoder: HashEncoder | None = None) -> Engine:
    """Make an index of two documents."""
    documents = [Document("a", "rain floods valencia"), Document("b", "voters elect parliament")]
    return make_engine(directory, documents, encoder or HashEncoder())


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return make(tmp_path / "i")


def ids(engine: Engine, text: str = "rain parliament") -> set[str]:
    return set(engine.search(text, 1000, mode="dense").hits[0].ids)


def in_another_process(work: Callable[..., None], *arguments: object) -> None:
    process = CONTEXT.Process(target=work, args=arguments)
    process.start()
    process.join(60)
    assert process.exitcode == 0


def add(directory: Path, id_: str) -> None:
    Engine(directory, encoder=HashEncoder()).add([Document(id_, "rain again")])


def test_a_search_sees_what_another_process_has_committed(engine: Engine) -> None:
    kept = Engine(engine.directory, encoder=HashEncoder(), follow=False)
    in_another_process(add, engine.directory, "c")
    assert ids(engine) == {"a", "b", "c"}
    assert engine.document("c").text == "rain again"
    assert not engine.refresh()
    assert ids(kept) == {"a", "b"}
    assert kept.refresh()
    assert ids(kept) == {"a", "b", "c"}


def test_a_search_without_a_commit_opens_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    before = engine.collection
    monkeypatch.setattr(manifests, "load", None)
    assert ids(engine) == {"a", "b"}
    assert engine.collection is before


def test_a_search_leaves_opening_to_a_change_of_its_engine(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To open it takes many times as long as a search."""
    commit, met = Writer.commit, []

    def commit_and_search(writer: Writer) -> Manifest:
        manifest = commit(writer)
        met.append("new" in ids(engine))
        return manifest

    monkeypatch.setattr(Writer, "commit", commit_and_search)
    engine.add([Document("new", "rain parliament")])
    assert met == [False]
    assert "new" in ids(engine)


def test_a_manifest_that_is_only_touched_opens_nothing(engine: Engine) -> None:
    before = engine.collection
    (engine.directory / manifests.NAME).touch()
    assert ids(engine) == {"a", "b"}
    assert not engine.refresh()
    assert engine.collection is before


def test_hits_read_their_documents_from_the_generation_that_was_searched(engine: Engine) -> None:
    answer = engine.search("rain", 1, mode="bm25")
    engine.delete(["a"])
    Engine(engine.directory, encoder=HashEncoder()).add([Document("c", "rain")])
    with Writer.open(engine.directory) as writer:
        writer.compact()
    assert ids(engine) == {"b", "c"}
    ((id_, score, document),) = answer.hits[0]
    assert (id_, document) == ("a", Document("a", "rain floods valencia"))
    assert score == answer.hits[0].scores[0]
    with pytest.raises(UnknownIdError):
        engine.document("a")


def test_files_are_checked_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    check = storage._damage_of

    def counted(directory: Path, name: str, expected: FileRecord, content: bool) -> str | None:
        read.append(name)
        return check(directory, name, expected, content)

    engine.add([Document(f"d{n}", "rain") for n in range(20)])  # too many to be merged with one
    before = {Path(name).name for name in engine.collection.manifest.files if name.startswith("text/")}
    before |= set(engine.collection.manifest.files)
    in_another_process(add, engine.directory, "c")
    monkeypatch.setattr(storage, "_damage_of", counted)
    assert engine.refresh()
    new = [name for name in engine.collection.manifest.files if not {name, Path(name).name} & before]
    assert sorted(read) == sorted(new) != sorted(engine.collection.manifest.files)
    assert new


def test_a_damaged_commit_is_named_and_the_engine_recovers(engine: Engine) -> None:
    in_another_process(add, engine.directory, "c")
    manifest = manifests.load(engine.directory)
    name = max(n for n in manifest.files if n.endswith("documents.jsonl"))
    content = (engine.directory / name).read_bytes()
    (engine.directory / name).write_bytes(content[:-1])
    for _ in range(2):
        with pytest.raises(IndexesError, match="restore the file from a backup"):
            engine.search("rain")
    (engine.directory / name).write_bytes(content)
    assert ids(engine) == {"a", "b", "c"}


def test_an_index_that_is_dropped_is_searched_as_it_was(engine: Engine) -> None:
    dropping.drop(engine.directory)
    assert ids(engine) == {"a", "b"}
    with pytest.raises(IndexesError, match="holds no index"):
        engine.refresh()


def test_another_index_in_its_place_needs_its_own_encoder(engine: Engine, tmp_path: Path) -> None:
    assert ids(engine) == {"a", "b"}
    make(tmp_path / "other", HashEncoder(8))
    shutil.rmtree(engine.directory)
    (tmp_path / "other").rename(engine.directory)
    with pytest.raises(IndexesError, match="is not the one"):
        engine.search("rain", mode="dense")
    assert engine.search("rain", mode="bm25").hits[0].ids == ("a",)


def test_a_closed_engine_says_so(engine: Engine) -> None:
    with engine as same:
        answer = same.search("rain", mode="bm25")
    engine.close()
    for use in (
        engine.refresh,
        lambda: engine.search("rain"),
        lambda: len(engine),
        lambda: engine.document("a"),
    ):
        with pytest.raises(IndexesError, match=r"is closed: open it again"):
            use()
    assert [hit.document for hit in answer.hits[0]] == [Document("a", "rain floods valencia")]


def commit(directory: Path, first: int) -> None:
    """Add 12 pairs of documents and delete 4 previous ones, so that every generation has an even number."""
    engine = Engine(directory, encoder=HashEncoder())
    for number in range(first, first + 12):
        engine.add([Document(f"x{number}", "rain"), Document(f"y{number}", "parliament")])
        if number % 3 == 2:
            engine.delete([f"x{number - 1}", f"y{number - 1}"])
    with Writer.open(directory) as writer:
        writer.compact()


def test_threads_share_an_engine_while_another_process_commits(engine: Engine) -> None:
    problems, seen, stop = list[str](), list[int](), threading.Event()

    def search() -> None:
        while not stop.is_set():
            try:
                for mode in ("dense", "hybrid"):
                    answer = engine.search(["rain parliament", "parliament"], 1000, mode=mode)
                    found = [{hit.document.id for hit in hits if hit.document} for hits in answer.hits]
                    seen.append(len(found[0]))
                    if found[0] != found[1] or answer.degraded or len(found[0]) % 2:
                        problems.append(f"{answer.degraded}: {found}")
            except Exception as e:  # any error is a finding
                problems.append(repr(e))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    processes = 0
    # one may end before a busy machine searches
    while len(set(seen)) <= 2 and processes < 20 and not problems:
        in_another_process(commit, engine.directory, 12 * processes)
        processes += 1
    stop.set()
    for thread in threads:
        thread.join()
    assert not problems
    assert len(set(seen)) > 2
    assert len(ids(engine)) == 2 + processes * 2 * (12 - 4)


def test_threads_load_an_encoder_once_and_take_turns(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, loaded, problems = threading.Lock(), list[str](), list[str]()

    class Alone(HashEncoder):
        def encode(self, texts, **options):  # type: ignore[no-untyped-def]  # as the parent's
            if not inside.acquire(blocking=False):
                problems.append("two threads encode at once")
                return super().encode(texts, **options)
            try:
                threading.Event().wait(0.002)
                return super().encode(texts, **options)
            finally:
                inside.release()

    def load(name: str, **_: object) -> HashEncoder:
        loaded.append(name)
        return Alone()

    monkeypatch.setattr(opened, "load_encoder", load)
    shared = Engine(engine.directory)
    threads = [threading.Thread(target=ids, args=(shared,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (loaded, problems) == (["hash"], [])


def test_add_waits_for_another_thread(engine: Engine) -> None:
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with Writer.open(engine.directory) as writer:
            holding.set()
            done.wait(30)
            writer.remove(["b"])
            writer.commit()

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(30)
    with pytest.raises(LockedError, match="this process is writing"):
        engine.add([Document("c", "rain")], wait=0)
    with pytest.raises(LockedError, match=r"still after 0\.1 seconds"):
        engine.delete(["a"], wait=0.1)
    threading.Timer(0.2, done.set).start()
    engine.add([Document("c", "rain")], wait=30)
    thread.join()
    assert ids(engine) == {"a", "c"}


def test_who_waits_for_himself_is_told_at_once(engine: Engine) -> None:
    with (
        Writer.open(engine.directory),
        pytest.raises(LockedError, match=r"^this process [^,]*: end that change"),
    ):
        engine.add([Document("c", "rain")], wait=10_000)
    engine.add([Document("c", "rain")])


def hold(directory: Path, held: threading.Event, release: threading.Event) -> None:
    with storage.write_lock(directory):
        held.set()
        release.wait(60)


def test_add_waits_for_another_process(engine: Engine) -> None:
    held, release = CONTEXT.Event(), CONTEXT.Event()
    process = CONTEXT.Process(target=hold, args=(engine.directory, held, release))
    process.start()
    assert held.wait(60)
    with pytest.raises(LockedError, match=r"another process is writing to .*, still after 0\.1 seconds"):
        engine.add([Document("c", "rain")], wait=0.1)
    threading.Timer(0.2, release.set).start()
    engine.add([Document("c", "rain")], wait=60)
    process.join()
    assert ids(engine) == {"a", "b", "c"}


def test_who_waits_for_an_index_that_is_dropped_leaves_nothing_behind(engine: Engine) -> None:
    holding = threading.Event()

    def drop() -> None:
        with storage.write_lock(engine.directory):
            holding.set()
            threading.Event().wait(0.2)
            (engine.directory / storage.LOCK).unlink()

    thread = threading.Thread(target=drop)
    thread.start()
    assert holding.wait(30)
    with pytest.raises(IndexesError, match="lock"):
        engine.add([Document("c", "rain")], wait=30)
    thread.join()
    assert not (engine.directory / storage.LOCK).exists()


def test_changes_applied_together_are_those_made_one_by_one(engine: Engine, tmp_path: Path) -> None:
    alone = make(tmp_path / "alone")
    changes: list[Document | str] = [
        Document("c", "rain"), "x", Document("a", "parliament"), "c", "b", Document("c", "voters"), "b",
    ]  # fmt: skip
    generation, expected = engine.collection.manifest.generation, []
    for change in changes:
        id_ = change if isinstance(change, str) else change.id
        expected.append(id_ in alone)
        if isinstance(change, Document):
            alone.add([change], replace=True)
        elif id_ in alone:
            alone.delete([id_])
    assert engine.apply(changes) == expected
    assert engine.collection.manifest.generation == generation + 1
    assert list(engine.documents()) == list(alone.documents()) != []
    assert engine.apply(["x"]) == [False]
    assert engine.collection.manifest.generation == generation + 1


class Watched:
    """Says which thread released it."""

    def __init__(self, released: list[str]) -> None:
        self._released = released

    def __del__(self) -> None:
        self._released.append(threading.current_thread().name)


def test_its_thread_releases_what_it_keeps() -> None:
    retiring, released = Retiring(), list[str]()
    for _ in range(3):
        retiring.put(Watched(released))
    retiring.close()
    retiring.put(Watched(released))
    retiring.close()
    assert released == ["release generations"] * 4
    assert retiring._thread is None


def test_an_engine_retires_each_generation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    building.create(tmp_path / "i", encoder="none")
    with Engine.open(tmp_path / "i") as engine:
        kept: list[object] = []
        monkeypatch.setattr(engine._retiring, "put", kept.append)
        engine.add([Document("a", "some text")])
        engine.delete(["a"])
        assert [len(each.collection) for each in kept if isinstance(each, Snapshot)] == [0, 1]


def test_a_directory_may_be_text(engine: Engine) -> None:
    with Engine(str(engine.directory)) as same:
        assert same.directory == engine.directory
        assert len(same) == len(engine)
