"""Files that are not ours are untouched, wherever they are and whatever their name; and no link leads outside."""

import os
from pathlib import Path

import pytest

from indexes import dropping
from indexes.interface import Document, IndexesError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store import ownership, records
from indexes.writer import Writer
from linker.engine.building import create
from linker.engine.engine import Engine
from tests.faults.support import assert_tidy
from tests.helpers import linker, write_corpus

OTHERS = (
    "NOTES.md", "segments/NOTES.md", "segments/000001/NOTES.md", "segments/000001/deeper/ids.txt",
    "segments/1/ids.txt", "text/1.txt", "text/000001/a.postings", "text/000001.postings",
    "quarantine/NOTES.md", "quarantine/000001.jsonl.bak", "graph/mine.faiss", "deleted/000001.i64/file",
    "generations/notes.json", "encoder/model.safetensors", "encoder/config.json",
    "encoder/0123456789abcdef/config.json",
)  # fmt: skip


def filled(directory: Path) -> Path:
    create(directory)
    Engine(directory).add([Document("a", "one"), Document("b", "two")])
    return directory


def content(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def write_others(folder: Path) -> dict[str, bytes]:
    for name in OTHERS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"my {name}", encoding="utf-8")
    return {name: f"my {name}".encode() for name in OTHERS}


@pytest.mark.parametrize(
    "name", ["text/1.txt", "encoder/model.safetensors", "scratch/x", "segments/000001/ids.txt"]
)
@pytest.mark.parametrize("lock", [None, b"", b"4711"])
def test_a_build_refuses_a_folder_it_did_not_make(tmp_path: Path, name: str, lock: bytes | None) -> None:
    corpus, out = write_corpus(tmp_path / "c.jsonl", 3), tmp_path / "news"
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("mine", encoding="utf-8")
    if lock is not None:
        (out / storage.LOCK).write_bytes(lock)
    before = content(out)
    for more in ([], ["--resume"]):
        refused = linker("index", "build", corpus, "--out", out, *more, check=1).stderr
        assert f"{out} is not empty (it holds" in refused
        assert content(out) == before


@pytest.mark.parametrize("lock", [b"4711\n", b"linker: something else\n", b"x" + ownership.MARK])
def test_a_lone_lock_file_of_another_program_makes_nothing_ours(tmp_path: Path, lock: bytes) -> None:
    (tmp_path / "lock").write_bytes(lock)
    assert not ownership.is_marked(tmp_path)
    with pytest.raises(IndexesError, match=r"is not empty \(it holds 'lock'\)"):
        create(tmp_path)
    with pytest.raises(IndexesError, match="was not made by linker"):
        dropping.discard(tmp_path)
    assert content(tmp_path) == {"lock": lock}


def test_what_a_killed_build_left_is_discarded_and_nothing_else(tmp_path: Path) -> None:
    out = filled(tmp_path / "i")
    (out / manifests.NAME).unlink()
    (out / "quarantine").mkdir(exist_ok=True)
    (out / "quarantine" / "NOTES.md").write_text("mine")
    dropping.discard(out)
    assert content(out) == {"quarantine/NOTES.md": b"mine"}
    dropping.discard(filled(tmp_path / "whole"))
    dropping.discard(tmp_path / "none")
    assert [p.name for p in tmp_path.iterdir()] == ["i"]


def test_texts_in_a_folder_of_our_names_are_not_taken_for_leftovers(tmp_path: Path) -> None:
    news = tmp_path / "news"
    (news / "text").mkdir(parents=True)
    (news / "text" / "1.txt").write_text("x", encoding="utf-8")
    assert "put the index elsewhere" in linker("index", "build", news / "text", "--out", news, check=1).stderr
    assert content(news) == {"text/1.txt": b"x"}


def test_a_corpus_inside_the_index_is_refused(tmp_path: Path) -> None:
    out = filled(tmp_path / "i")
    inside = write_corpus(out / "c.jsonl", 3)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "c.txt").symlink_to(inside)
    (tmp_path / "way").symlink_to(out)
    before = content(out)
    for corpus in (inside, out, folder, tmp_path / "way" / "c.jsonl", out / "quarantine" / ".." / "c.jsonl"):
        (out / "quarantine").mkdir(exist_ok=True)
        for command in (("add", out, corpus), ("build", corpus, "--out", out, "--resume")):
            refused = linker("index", *command, check=1).stderr
            assert "put the index elsewhere" in refused or "inside the corpus" in refused
    assert content(out) == before


def test_the_mark_is_on_disk_before_anything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, states = tmp_path / "a" / "i", []
    fsync = os.fsync

    def seen(descriptor: int) -> None:
        fsync(descriptor)
        states.append((Path(f"/proc/self/fd/{descriptor}").readlink(), sorted(p.name for p in out.iterdir())))

    monkeypatch.setattr(os, "fsync", seen)
    with ownership.claim(out):
        pass
    flushed = [path for path, names in states if names == ["lock"]]
    assert {out / "lock", out, tmp_path / "a", tmp_path} <= {path for path, _ in states}
    assert flushed.index(out / "lock") < flushed.index(out)
    assert (out / "lock").read_bytes() == ownership.MARK


@pytest.mark.parametrize("written", [0, 1, len(ownership.MARK) - 1, len(ownership.MARK)])
def test_a_mark_cut_short_is_written_again(tmp_path: Path, written: int) -> None:
    (tmp_path / "lock").write_bytes(ownership.MARK[:written])
    filled(tmp_path)
    assert (tmp_path / "lock").read_bytes() == ownership.MARK


def test_files_of_others_outlive_every_change(tmp_path: Path) -> None:
    out = filled(tmp_path / "i")
    others = write_others(out)
    linker("index", "add", out, write_corpus(tmp_path / "c.jsonl", 30))
    linker("index", "delete", out, "d1", "a")
    linker("index", "compact", out)
    linker("index", "verify", out)
    assert others.items() <= content(out).items()
    assert len(Engine(out)) == 30
    linker("index", "drop", out, "--yes")
    assert content(out) == others


def test_files_of_others_stay_when_a_killed_build_is_swept(tmp_path: Path) -> None:
    out = filled(tmp_path / "i")
    left = {name: data for name, data in content(out).items() if name != manifests.NAME}
    assert len(left) > 4
    (out / manifests.NAME).unlink()
    (out / "lock").write_bytes(ownership.MARK)
    others = write_others(out)
    with pytest.raises(IndexesError, match=r"it holds 'NOTES.md'"):
        create(out)
    (out / "NOTES.md").unlink()
    del others["NOTES.md"]
    create(out)
    assert content(out).keys() == {*others, "lock", manifests.NAME}
    Engine(out).add([Document("a", "one")])
    assert len(Engine(out)) == 1


def model(folder: Path) -> Path:
    (folder / "training").mkdir(parents=True)
    for name in ("config.json", "weights", "vocab.txt"):
        (folder / name).write_text(name, encoding="utf-8")
    return folder


def with_encoder(out: Path, folder: Path, stop: str = "") -> None:
    record = records.EncoderRecord("m", "0123456789abcdef" * 4, 2)
    manifest = records.Manifest(vectors="flat", encoder=record)
    with Writer.create(out, manifest, folder):
        if stop:
            raise KeyboardInterrupt


def test_only_what_was_copied_of_a_model_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, folder = tmp_path / "i", model(tmp_path / "m")
    with monkeypatch.context() as patch:
        patch.setattr(storage, "replace_manifest", interrupt)
        with pytest.raises(KeyboardInterrupt):
            with_encoder(out, folder)
    place = out / "encoder" / "0123456789abcdef"
    assert {p.name for p in place.iterdir()} == {"config.json", "weights", "vocab.txt"}
    (place / "mine").write_text("mine", encoding="utf-8")
    with (out / "lock").open("ab") as file:
        file.write(b'\n"encoder/../../m/conf')  # a writer died here
    with_encoder(out, folder)
    assert storage.load_checked(out).files.keys() == {
        f"encoder/0123456789abcdef/{name}" for name in ("config.json", "weights", "vocab.txt")
    }
    dropping.drop(out)
    assert content(out) == {"encoder/0123456789abcdef/mine": b"mine"}
    assert len(content(folder)) == 3


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_drop_is_finished_by_the_next_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "i"
    with_encoder(out, model(tmp_path / "m"))
    (out / "lock").write_bytes(b"")  # how locks looked before they had a mark
    with monkeypatch.context() as patch:
        patch.setattr(ownership, "sweep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            dropping.drop(out)
    assert content(out).keys() > {"lock"}
    create(out)
    assert content(out).keys() == {"lock", manifests.NAME}


LINKS = (
    *storage.FOLDERS, "lock", "segments/000001", "text/000001", "segments/000001/ids.txt", "segments/000009",
    "segments/000009/ids.txt",
)  # fmt: skip


@pytest.mark.parametrize("name", LINKS)
def test_no_link_is_followed(tmp_path: Path, name: str) -> None:
    out, corpus = filled(tmp_path / "i"), write_corpus(tmp_path / "c.jsonl", 3)
    elsewhere = tmp_path / "elsewhere"
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    if (out / name).exists():
        (out / name).rename(elsewhere)
    elif name.endswith(".txt"):
        elsewhere.write_text("mine", encoding="utf-8")
    else:
        (elsewhere / "000009").mkdir(parents=True)
        for mine in ("ids.txt", "000009.jsonl", "000009/ids.txt", "0123456789abcdef" * 2 + ".postings"):
            (elsewhere / mine).write_text("mine", encoding="utf-8")
    (out / name).symlink_to(elsewhere)
    before, manifest = content(tmp_path), (out / manifests.NAME).read_bytes()
    for arguments in (("add", out, corpus), ("delete", out, "a"), ("compact", out), ("drop", out, "--yes")):
        refused = linker("index", *arguments, check=1).stderr
        assert str(out / name) in refused
        assert "symbolic link" in refused or "not one of linker's files" in refused
        assert content(tmp_path) == before
    assert (out / manifests.NAME).read_bytes() == manifest


def test_an_index_may_be_reached_by_a_link(tmp_path: Path) -> None:
    filled(tmp_path / "i")
    way = tmp_path / "way"
    way.symlink_to("i")
    linker("index", "delete", way, "a")
    linker("index", "compact", way)
    assert len(Engine(way)) == 1
    assert_tidy(tmp_path / "i")


def test_sweep_keeps_what_is_listed_and_follows_nothing(tmp_path: Path) -> None:
    ours = (
        "segments/000001/ids.txt", "segments/000002/ids.txt", "scratch/postings.tmp", "graph/000002.faiss",
    )  # fmt: skip
    others = write_others(tmp_path)
    for name in (*ours, "manifest.json.tmp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "000007").mkdir(parents=True)
    (elsewhere / "000007" / "ids.txt").write_bytes(b"mine")
    (tmp_path / "segments" / "000007").symlink_to(elsewhere / "000007")
    (tmp_path / "segments" / "000002" / "offsets.i64").symlink_to(elsewhere / "000007" / "ids.txt")
    ownership.sweep(tmp_path, {"segments/000001/ids.txt"})
    assert (elsewhere / "000007" / "ids.txt").read_bytes() == b"mine"
    assert (tmp_path / "segments" / "000002" / "offsets.i64").is_symlink()
    left = content(tmp_path).keys() - {"elsewhere/000007/ids.txt", "segments/000002/offsets.i64"}
    assert left - {"segments/000007/ids.txt"} == {*others, "segments/000001/ids.txt"}
    assert not (tmp_path / "scratch").exists()
