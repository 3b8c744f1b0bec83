"""Older generations: as many kept as requested, checked out whole, and dropped with their files."""

import shutil
from pathlib import Path

import orjson
import pytest

from indexes.cluster.client import ElasticSettings
from indexes.collection import Collection
from indexes.interface import DamagedError, IndexesError
from indexes.store import files as storage
from indexes.store import generations, records
from indexes.store import manifest as manifests
from indexes.writer import Writer
from tests.faults.support import KILLED, Worker, content
from tests.helpers import linker, write_corpus


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that keeps two older generations: built, added to, deleted from, compacted."""
    folder = tmp_path_factory.mktemp("kept")
    with Worker() as worker:
        worker.make("build", write_corpus(folder / "c.jsonl", 60), folder / "i")
        linker("index", "delete", folder / "i", "d1", "--keep", "2")
        worker.make("add", write_corpus(folder / "m.jsonl", 30, prefix="m"), folder / "i")
        worker.make("compact", folder / "i")
    return folder / "i"


@pytest.fixture
def out(base: Path, tmp_path: Path) -> Path:
    return shutil.copytree(base, tmp_path / "i")


def ids(out: Path) -> list[str]:
    rows = Collection.open(out).rows
    return [id_ for id_ in rows.ids if id_ in rows]


def assert_nothing_else(out: Path) -> None:
    """Every file belongs to a generation, and none is damaged."""
    listed = generations.with_kept(out)
    assert storage.damage(out, listed) == []
    files = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    older = {p.relative_to(out).as_posix() for p in (out / "generations").glob("*")}
    assert files == {*listed.files, *older, manifests.NAME, storage.LOCK}


def test_as_many_are_kept_as_asked_for(out: Path) -> None:
    last = manifests.load(out)
    assert list(generations.kept(out, last)) == [last.generation - 2, last.generation - 1]
    assert_nothing_else(out)
    shown = orjson.loads(linker("index", "info", out, "--json").stdout)
    assert shown["generations"] == [last.generation - 2, last.generation - 1]
    linker("index", "delete", out, "d2", "--keep", "1")
    assert list(generations.kept(out, manifests.load(out))) == [last.generation]
    assert_nothing_else(out)
    linker("index", "compact", out, "--keep", "0")
    linker("index", "compact", out, "--keep", "0")
    assert not (out / "generations").exists()
    assert_nothing_else(out)


def test_an_older_generation_comes_back_and_the_later_one_too(out: Path) -> None:
    last = manifests.load(out)
    after, first = content(out), last.generation - 2
    older = [f"d{n}" for n in range(60) if n != 1]
    assert ids(out) == [*older, *(f"m{n}" for n in range(30))]
    done = linker("index", "checkout", out, str(first)).stdout
    assert done == f"{out}: generation {first + 3} has the content of generation {first}, 59 documents\n"
    assert ids(out) == older
    assert list(generations.kept(out, manifests.load(out))) == [first + 1, first + 2]
    assert_nothing_else(out)
    linker("index", "checkout", out, str(first + 2))
    assert content(out) == after
    with Writer.open(out) as writer:
        writer.remove(["m3"])
        writer.commit()
    assert len(ids(out)) == 88
    assert_nothing_else(out)


def test_what_cannot_be_checked_out_is_named(out: Path, tmp_path: Path) -> None:
    last = manifests.load(out).generation
    refused = linker("index", "checkout", out, "99", check=1).stderr
    assert f"does not keep generation 99: it keeps {last - 2}, {last - 1}" in refused
    victim = out / str(generations.kept(out, manifests.load(out))[last - 2].only_file("deleted"))
    victim.write_bytes(b"x" * victim.stat().st_size)
    assert str(victim) in linker("index", "checkout", out, str(last - 2), check=1).stderr
    assert str(victim) in linker("index", "verify", out, check=1).stdout
    assert manifests.load(out).generation == last
    (out / "generations" / "keep").write_text("many", encoding="utf-8")
    with pytest.raises(DamagedError, match="keep is damaged"), Writer.open(out):
        pass
    linker("index", "build", write_corpus(tmp_path / "c.jsonl", 3), "--out", tmp_path / "j")
    assert "none are kept" in linker("index", "checkout", tmp_path / "j", "0", check=1).stderr
    assert not (tmp_path / "j" / "generations").exists()


def test_a_damaged_older_manifest_deletes_nothing(out: Path) -> None:
    path = next((out / "generations").glob("*.json"))
    data = path.read_bytes()
    path.write_bytes(data[:-9])
    files = {p for p in out.rglob("*") if p.is_file()}
    with pytest.raises(DamagedError, match=path.name), Writer.open(out):
        pass
    assert {p for p in out.rglob("*") if p.is_file()} == files


def test_unfinished_builds_are_not_kept(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", 50)
    options = ("--commit-every", "10", "--batch-size", "10", "--keep", "3")
    linker("index", "build", corpus, "--out", tmp_path / "i", *options)
    last = manifests.load(tmp_path / "i")
    assert last.generation > 3
    assert generations.kept(tmp_path / "i", last) == {}
    assert generations.limit(tmp_path / "i") == 3


def test_nothing_is_kept_of_what_lies_on_a_server(tmp_path: Path) -> None:
    server = records.Manifest(elastic=ElasticSettings(("http://localhost:1",), "news").to_json())
    with (
        pytest.raises(IndexesError, match="Elasticsearch \\(news\\)"),
        Writer.create(tmp_path / "i", server, keep=1),
    ):
        pass
    assert not (tmp_path / "i").exists()
    tmp_path.joinpath("j").mkdir()
    storage.replace_manifest(tmp_path / "j", server)
    for command in (("checkout", "1"), ("backup", tmp_path / "b"), ("compact", "--keep", "1")):
        refused = linker("index", command[0], tmp_path / "j", *command[1:], check=1).stderr
        assert "Elasticsearch (news)" in refused
        assert "take snapshots of it there, each with a copy of the directory" in refused
    assert not (tmp_path / "b").exists()


@pytest.mark.slow
def test_killed_while_it_gives_up_and_takes_up_generations(out: Path) -> None:
    before = content(out)
    with Worker() as worker:
        for point in ("manifest.written", "manifest.replaced", "sweep.deleted", "file.unflushed"):
            for passing in (1, 2):
                deleted = sorted(set(ids(out)))[:2]
                (out.parent / "ids").write_text(" ".join(deleted), encoding="utf-8")
                answer = worker.ask("delete", out.parent / "ids", out, fault=f"{point}:{passing}")
                older = generations.kept(out, manifests.load(out))
                assert storage.damage(out, generations.with_kept(out)) == []
                assert older or answer["status"] != KILLED
                worker.make("compact", out)
                assert len(generations.kept(out, manifests.load(out))) == 2
                assert_nothing_else(out)
    assert content(out) != before
