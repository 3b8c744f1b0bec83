import dataclasses
import math
import multiprocessing.synchronize
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexes.disk import writing
from indexes.disk.writing import FileRecord, record_of
from indexes.interface import DamagedError, Document, FormatVersionError, IndexesError, LockedError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store.document_checks import read_document, read_ids, read_offsets
from indexes.store.documents import DocumentStore
from indexes.store.records import BuildRecord, EncoderRecord, Manifest, Segment
from indexes.store.schema import SchemaError, parse
from indexes.store.segments import write_segment
from indexes.text.parameters import AnalysisSettings, Bm25Parameters
from linker.engine import Engine, building

FULL = Manifest(
    vectors="hnsw",
    analysis=AnalysisSettings("german", "posts", stop_words=True, min_token=2),
    bm25=Bm25Parameters(2, 0.5, math.inf),
    encoder=EncoderRecord("m", "f" * 64, 8),
    generation=3,
    documents=5,
    quarantined=1,
    segments=(Segment("000001", 4), Segment("000003", 2)),
    build=BuildRecord(False, 7, (("ä.jsonl", "123"),)),
    search={"mode": "hybrid", "fusion": {"method": "rrf", "weights": [0.5, 0.5], "k": 60}},
    files={
        **{
            f"segments/{name}/{file}": FileRecord(size, "a" * 32)
            for name, rows in (("000001", 4), ("000003", 2))
            for file, size in (
                ("ids.txt", 3), ("documents.jsonl", 99), ("offsets.i64", 8 * rows + 8), ("vectors.f32", 32 * rows),
            )
        },
        "deleted/000003.i64": FileRecord(8, "b" * 32),
        f"text/000003/{'c' * 32}.postings": FileRecord(64, "c" * 32),
    },
)  # fmt: skip


def put(folder: Path, manifest: Manifest) -> None:
    """Write a manifest whose files need not exist."""
    (folder / manifests.NAME).write_bytes(manifests.dump(manifest))


def test_manifest_round_trip(tmp_path: Path) -> None:
    for manifest in (FULL, Manifest()):
        put(tmp_path, manifest)
        assert manifests.load(tmp_path) == manifest
    assert FULL.rows == 6
    assert FULL.only_file("deleted") == "deleted/000003.i64"
    assert FULL.only_file("graph") is None


def test_every_flipped_byte_of_the_manifest_is_noticed(tmp_path: Path) -> None:
    put(tmp_path, FULL)
    path = tmp_path / manifests.NAME
    sound = path.read_bytes()
    for place in range(len(sound)):
        for bit in (0x01, 0x20, 0x80):
            damaged = bytearray(sound)
            damaged[place] ^= bit
            path.write_bytes(damaged)
            with pytest.raises(DamagedError, match=manifests.NAME):
                manifests.load(tmp_path)
    for length in range(len(sound)):
        path.write_bytes(sound[:length])
        with pytest.raises(DamagedError):
            manifests.load(tmp_path)


def test_a_manifest_of_the_future_and_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(IndexesError, match="holds no index"):
        manifests.load(tmp_path)
    for number in (1, 2, 4):
        put(tmp_path, dataclasses.replace(FULL, format=number))
        with pytest.raises(
            FormatVersionError, match=rf"has format {number}, but this version reads 3: build the index again"
        ):
            manifests.load(tmp_path)


def hold(directory: Path, held: multiprocessing.synchronize.Event) -> None:
    with storage.write_lock(directory):
        held.set()
        held.wait()
        multiprocessing.Event().wait()


def test_one_writer_and_no_stale_lock_after_a_kill(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    process = context.Process(target=hold, args=(tmp_path, held))
    process.start()
    assert held.wait(30)
    with pytest.raises(LockedError, match="another process is writing"), storage.write_lock(tmp_path):
        pass
    process.kill()
    process.join()
    with storage.write_lock(tmp_path):
        assert (tmp_path / storage.LOCK).read_bytes() == b""


def test_a_thread_that_waits_is_next_although_another_locks_without_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, locked = threading.Event(), threading.Event()
    attempt = storage._try_lock

    def attempted(*args: Any) -> int | None:
        holder = attempt(*args)
        if threading.current_thread() is waiting:
            tried.set()
        return holder

    def wait() -> None:
        with storage.write_lock(tmp_path, 60):
            locked.set()

    waiting = threading.Thread(target=wait)
    monkeypatch.setattr(storage, "_try_lock", attempted)
    monkeypatch.setattr(storage, "PAUSE", 0.5)
    with storage.write_lock(tmp_path):
        waiting.start()
        assert tried.wait(30)
    with storage.write_lock(tmp_path, 60):
        assert locked.is_set()
    waiting.join()


def test_damage_names_missing_short_and_altered_files(tmp_path: Path) -> None:
    records = {}
    (tmp_path / "quarantine").mkdir()
    for name in (f"quarantine/00000{n}.jsonl" for n in range(4)):
        records[name] = writing.write(tmp_path / name, [b"hello ", b"world"])
        assert records[name] == record_of(tmp_path / name)
    manifest = Manifest(files=records)
    assert storage.damage(tmp_path, manifest) == []
    (tmp_path / "quarantine/000000.jsonl").unlink()
    (tmp_path / "quarantine/000001.jsonl").write_bytes(b"hello")
    (tmp_path / "quarantine/000002.jsonl").write_bytes(b"hello worle")
    lines = storage.damage(tmp_path, manifest)
    assert len(lines) == 3
    assert "000000.jsonl: missing" in lines[0]
    assert "000001.jsonl: 5 bytes instead of 11" in lines[1]
    assert "000002.jsonl: content does not match" in lines[2]
    put(tmp_path, manifest)
    with pytest.raises(DamagedError, match=r"000000\.jsonl: missing"):
        storage.load_checked(tmp_path)


def test_documents_are_read_back_by_row_over_segments(tmp_path: Path) -> None:
    first = [
        Document("1", "Zwölf Boxkämpfer", "T", {"year": 1999, "tags": ["x", None]}),
        Document("2", "a\nb\u2028c"),
    ]
    second = [Document("ü", "", "only a title")]
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    write_segment(tmp_path, "000001", first, [vectors[:1], vectors[1:2]])
    write_segment(tmp_path, "000002", second, [vectors[2:]])
    store = DocumentStore(tmp_path, [Segment("000001", 2), Segment("000002", 1)])
    assert [store[row] for row in range(3)] == first + second
    assert store.ids() == ["1", "2", "ü"]
    assert list(store.metadata()) == [d.metadata for d in first + second]
    (block,) = store.vectors(2)
    assert block.tolist() == vectors.tolist()
    (mapped,) = DocumentStore(tmp_path, [Segment("000001", 2)]).vectors(2)
    assert isinstance(mapped, np.memmap)
    assert mapped.tolist() == vectors[:2].tolist()
    (tmp_path / "segments" / "000002" / "vectors.f32").write_bytes(b"1234")
    with pytest.raises(DamagedError, match=r"000002.*vectors\.f32 is too short"):
        DocumentStore(tmp_path, [Segment("000001", 2), Segment("000002", 1)]).vectors(2)


def test_the_way_to_a_new_folder_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []

    def fsync(descriptor: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    monkeypatch.setattr(os, "fsync", fsync)
    writing.make_folder(tmp_path / "a" / "b" / "c")
    assert {str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")} <= set(flushed)
    flushed.clear()
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b")
    writing.make_folder(tmp_path / "link")  # its creator may have died before flushing it
    assert flushed == [str(tmp_path / "a")]
    monkeypatch.chdir(tmp_path / "a")
    flushed.clear()
    writing.make_folder(Path("x/y"))
    assert set(flushed) == {str(tmp_path / "a"), str(tmp_path / "a" / "x")}


def test_disk_errors_say_what_to_do(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    with (
        pytest.raises(IndexesError, match=r"creating x failed: Not a directory .*file/sub.*intact"),
        storage.disk_errors("creating x"),
    ):
        (blocked / "sub").mkdir()


VECTORS = np.eye(4, dtype=np.float32)[[0, 1, 2]]


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    found = [tmp_path / name for name in ("a.index", "b.index")]
    for number, out in enumerate(found):
        building.create(out)
        with Engine(out) as engine:
            engine.add([Document(f"{number}-{n}", f"text {n}") for n in range(3)])
    return found


@pytest.mark.parametrize("count", [1, 2])
def test_a_flipped_text_is_found_by_a_checksum_only(shards: list[Path], count: int) -> None:
    given = shards if count == 2 else shards[0]
    path = next(shards[0].glob("segments/*/documents.jsonl"))
    path.write_bytes(path.read_bytes().replace(b"text 1", b"TEXT 1"))
    with pytest.raises(DamagedError, match="checksum"):
        Engine(given, on_failure="fail")
    with Engine.open(given, on_failure="fail", verify=False) as engine:
        assert engine.document("0-1").text == "TEXT 1"
        assert len(engine.search("text", 10).hits[0]) == 3 * count


@pytest.mark.parametrize("name", ["documents.jsonl", "ids.txt", "offsets.i64"])
def test_a_file_of_another_size_is_refused_in_any_case(shards: list[Path], name: str) -> None:
    path = next(shards[0].glob(f"segments/*/{name}"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedError, match=name):
        Engine(shards[0], verify=False)


def test_vectors_are_not_read(tmp_path: Path) -> None:
    corpus, matrix, names = (tmp_path / name for name in ("c.jsonl", "v.npy", "v.ids"))
    corpus.write_text("".join(f'{{"_id": "{n}", "text": "text {n}"}}\n' for n in range(3)))
    np.save(matrix, VECTORS)
    names.write_text("0\n1\n2\n")
    out = tmp_path / "x.index"
    building.build([corpus], out, building.BuildOptions(vectors="flat", vectors_file=matrix, ids_file=names))
    path = next(out.glob("segments/*/vectors.f32"))
    path.write_bytes((3 * VECTORS).astype("<f4").tobytes())
    with pytest.raises(DamagedError):
        Engine(out)
    with Engine(out, verify=False) as engine:
        assert engine.search(vectors=VECTORS[1], k=1).hits[0].ids == ("1",)


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files and folders that are flushed."""
    names: list[str] = []
    monkeypatch.setattr(writing, "sync", lambda path: names.append(path.name))
    return names


def test_a_link_to_a_flushed_file_is_not_flushed(tmp_path: Path, flushed: list[str]) -> None:
    """Neither is the root, whose folders an earlier commit has made durable, before the manifest is renamed in it."""
    file, record = f"{'0' * 32}.postings", FileRecord(8, "0" * 32)
    one, linked, copied = (tmp_path / "text" / number / file for number in ("000001", "000002", "000003"))

    def commit(path: Path, *earlier: Path) -> list[str]:
        flushed.clear()
        files = {path.relative_to(tmp_path).as_posix(): record}
        names = [old.relative_to(tmp_path).as_posix() for old in earlier]
        storage.replace_manifest(tmp_path, Manifest(files=files), names)
        assert flushed.pop() == tmp_path.name
        return sorted(flushed)

    for path in (one, linked, copied):
        path.parent.mkdir(parents=True)
    one.write_bytes(b"postings")
    linked.hardlink_to(one)
    copied.write_bytes(b"postings")
    temporary = f"{manifests.NAME}.tmp"
    assert commit(one) == sorted([file, "000001", "text", tmp_path.name, temporary])
    assert commit(linked, one) == sorted(["000002", "text", temporary])
    assert commit(copied, one) == sorted([file, "000003", "text", temporary])


def test_a_flush_that_fails_is_an_error_once_the_others_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / str(number) for number in range(3 * writing.FLUSHES)]
    ended: list[Path] = []

    def sync(path: Path) -> None:
        if path == paths[-1]:
            raise OSError(5, "no disk", str(path))
        ended.append(path)

    monkeypatch.setattr(writing, "sync", sync)
    writing.flush(paths[:-1])
    assert set(ended) == set(paths[:-1])
    ended.clear()
    with pytest.raises(OSError, match="no disk"):
        writing.flush(paths[::-1])
    assert set(ended) == set(paths[:-1])


def test_damaged_documents_are_refused(tmp_path: Path) -> None:
    offsets, ids = tmp_path / "offsets.i64", tmp_path / "ids.txt"
    for rows in ([0, 5], [1, 5, 9], [0, 5, 8], [0, 0, 9]):
        np.array(rows, dtype="<i8").tofile(offsets)
        with pytest.raises(DamagedError, match="do not match 2 documents in 9 bytes"):
            read_offsets(offsets, 2, 9)
    for content, why in ((b"a\n\xff", "not UTF-8"), (b"a", "2 valid"), ("a\nb\u3000c".encode(), "2 valid")):
        ids.write_bytes(content)
        with pytest.raises(DamagedError, match=why):
            read_ids(ids, 2)
    ids.write_text(
        "a\n\N{GREEK SMALL LETTER ALPHA}\U0001fae9", encoding="utf-8"
    )  # newer than some Python's tables
    assert len(read_ids(ids, 2)) == 2
    for line, why in (
        (b"{", "cannot be read as JSON"),
        (
            b'{"id":"a","text":"t","title":"","metadata":' + b'{"a":' * 300 + b"1" + b"}" * 301,
            "cannot be read as JSON",
        ),
        (b'{"id":"b","text":"t","title":"","metadata":{}}', "does not contain the document 'a'"),
        (b'{"id":"a","text":1,"title":"","metadata":{}}', "does not contain the document 'a'"),
    ):
        with pytest.raises(DamagedError, match=why):
            read_document(line, "a", "documents.jsonl")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 1, "a": 2}', "repeated"),
        ("[NaN]", "NaN is not JSON"),
        ("{", "not JSON"),
    ],
)
def test_a_manifest_is_strict_json(text: str, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        parse(text.encode())
