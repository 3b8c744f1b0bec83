"""Indexes with fields: how they are built, stored, searched, changed and repaired; what is refused."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from indexes.dropping import drop
from indexes.errors import DamagedError, IndexesError
from indexes.hybrid import Answer
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.text.parameters import Bm25Parameters, Field
from indexes.writer import Writer
from linker import Document, Engine, create
from linker.corpora import Query
from tests.helpers import linker, write_json_lines

RECORDS: list[dict[str, Any]] = [
    {"id": "a", "title": "cat", "text": "a dog and a mouse", "tags": ["fun", "pets"]},
    {"id": "b", "title": "dog", "text": "a cat and a cat"},
    {"id": "c", "title": "mouse", "text": "nothing of the kind", "tags": "cat"},
]
QUERIES = ["cat", "dog mouse", "fun", '"and a cat"']
FIELDS = (Field("title", 2.0), Field("text"), Field("tags", 1.0, 0.0))


def corpus(folder: Path, records: list[dict[str, Any]] = RECORDS) -> Path:
    path = folder / "corpus.jsonl"
    write_json_lines(path, records)
    return path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fields")
    options = ("--fields", "title, text,tags", "--field-weight", "title=2", "--field-b", "tags=0")
    linker("index", "build", corpus(folder), "--out", folder / "index", *options)
    return folder / "index"


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "index"))


def hits(answer: Answer) -> list[list[tuple[str, float]]]:
    return [list(zip(found.ids, found.scores.tolist(), strict=True)) for found in answer.hits]


def test_a_build_stores_fields_and_info_shows_them(built: Path) -> None:
    info = json.loads(linker("index", "info", built, "--json").stdout)
    assert info["bm25"] == Bm25Parameters(fields=FIELDS).to_json()
    assert info["bm25"]["fields"][0] == {"name": "title", "weight": 2.0, "b": None}
    assert {p.parent.name for p in (built / "text").rglob("*.postings")} == {"f0", "f1", "f2"}
    assert [set(h.ids) for h in Engine.open(built).search(QUERIES[:3]).hits] == [
        {"a", "b", "c"},
        {"a", "b", "c"},
        {"a"},
    ]
    assert not (built / "scratch").exists()


def test_weights_of_a_query_replace_the_stored_ones(built: Path) -> None:
    def found(*options: str) -> list[str]:
        done = linker("search", built, "--text", "cat", "--json", *options)
        return [hit["id"] for hit in json.loads(done.stdout)["hits"]]

    assert found()[0] == "a"
    assert found("--field-weight", "title=0.1", "--field-weight", "text=5")[0] == "b"
    assert found("--field-weight", "title=0", "--field-weight", "text=0") == ["c"]
    assert found("--k1", "0", "--field-b", "title=1")[0] == "a"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--field-weight", "no=1"), "no field 'no'"),
        (("--field-weight", "title"), "FIELD=NUMBER"),
        (("--field-weight", "title=x"), "FIELD=NUMBER"),
        (("--field-weight", "title=-1"), "weight of title is -1"),
        (("--field-b", "title=2"), "b of title is 2"),
        (("--field-weight", "title=0", "--field-weight", "text=0", "--field-weight", "tags=0"), "weight 0"),
    ],
)
def test_wrong_weights_are_named(built: Path, options: tuple[str, ...], message: str) -> None:
    done = linker("search", built, "--text", "cat", *options, check=None)
    assert done.returncode
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_what_cannot_have_fields_says_so(tmp_path: Path, index: Path) -> None:
    path, out = corpus(tmp_path), tmp_path / "new"
    done = linker("index", "build", path, "--out", out, "--field-weight", "title=2", check=1)
    assert "build it with --fields" in done.stderr
    done = linker("index", "build", path, "--out", out, "--fields", "title,,text", check=1)
    assert "not a valid field name" in done.stderr
    assert not out.exists()
    with Writer.open(index) as writer, pytest.raises(IndexesError, match="set by its build"):
        writer.commit(bm25=Bm25Parameters(fields=FIELDS[:2]))


def test_parameters_that_are_stored_keep_the_fields_and_wrong_weights_are_damage(index: Path) -> None:
    path = index / manifests.NAME
    whole = path.read_bytes()
    path.write_bytes(
        manifests._checked(whole.replace(b'"weight": 2.0', b'"weight": -2.0').partition(b",")[2])
    )
    with pytest.raises(DamagedError, match="weight"):
        Engine.open(index)
    path.write_bytes(whole)
    with Writer.open(index) as writer:
        writer.commit(bm25=Bm25Parameters(k1=2))
        assert writer.manifest.bm25 == Bm25Parameters(k1=2, fields=FIELDS)
        chosen = writer.manifest.bm25.weighted({"title": 0.1, "text": 5})
        writer.commit(bm25=chosen)
    assert Engine.open(index).search("cat").hits[0].ids[0] == "b"


def test_changes_give_what_a_build_from_scratch_gives(tmp_path: Path, index: Path) -> None:
    more = [
        Document(f"d{n}", f"cat and dog {n}", "mouse " * (n % 3), {"tags": ["fun"] * (n % 2)})
        for n in range(9)
    ]
    engine = Engine.open(index)
    for document in more:  # a commit each: segments of different sizes in each field
        engine.add([document])
    engine.delete(["b", "d3"])
    assert "b" not in {i for found in engine.search(QUERIES, 20).hits for i in found.ids}
    with Writer.open(index) as writer:
        writer.compact()
    kept = [engine.document(r["id"]) for r in RECORDS if r["id"] != "b"] + [d for d in more if d.id != "d3"]
    create(tmp_path / "new", bm25=Bm25Parameters(fields=FIELDS))
    Engine.open(tmp_path / "new").add(kept)
    for phrases in (False, True):
        expected = Engine.open(tmp_path / "new").search(QUERIES, 20, phrases=phrases)
        assert hits(Engine.open(index).search(QUERIES, 20, phrases=phrases)) == hits(expected)
    names = {p.relative_to(index / "text").parts[1:] for p in (index / "text").rglob("*.postings")}
    assert names == {
        p.relative_to(tmp_path / "new/text").parts[1:] for p in (tmp_path / "new/text").rglob("*.postings")
    }
    linker("index", "verify", index)


def test_a_build_continues_with_its_fields(tmp_path: Path, built: Path) -> None:
    path, out = corpus(tmp_path), tmp_path / "new"
    options = [
        "--fields", "title,text,tags", "--field-weight", "title=2", "--field-b", "tags=0", "--commit-every=1",
    ]  # fmt: skip
    linker("index", "build", path, "--out", out, *options)
    done = linker("index", "build", path, "--out", out, "--resume", "--fields", "title,text", check=1)
    assert "another --k1, --b, --k3 or --fields" in done.stderr
    linker("index", "build", path, "--out", out, "--resume", *options)
    assert hits(Engine.open(out).search(QUERIES)) == hits(Engine.open(built).search(QUERIES))


def test_damage_in_a_field_is_named(index: Path) -> None:
    (path,) = index.glob("text/*/f1/*.postings")
    whole = path.read_bytes()
    for wrong in (whole[:-1], b"x" + whole[1:]):
        path.write_bytes(wrong)
        with pytest.raises(DamagedError, match=path.name):
            Engine.open(index)
    path.unlink()
    with pytest.raises(DamagedError, match=f"{path.name}: missing"):
        Engine.open(index)


@pytest.mark.parametrize("fields", [(), FIELDS[:2], (*FIELDS, Field("more"))])
def test_a_manifest_with_other_fields_is_damaged(index: Path, fields: tuple[Field, ...]) -> None:
    manifest = manifests.load(index)
    bm25 = dataclasses.replace(manifest.bm25, fields=fields)
    storage.replace_manifest(index, dataclasses.replace(manifest, bm25=bm25))
    with pytest.raises(DamagedError, match="not those of its fields"):
        Engine.open(index)


def test_a_backup_and_a_drop_take_every_field(index: Path, tmp_path: Path) -> None:
    backup, restored = tmp_path / "backup.tar", tmp_path / "restored"
    linker("index", "backup", index, backup)
    linker("index", "restore", backup, restored)
    assert hits(Engine.open(restored).search(QUERIES)) == hits(Engine.open(index).search(QUERIES))
    drop(index)
    assert not index.exists() or not [p for p in index.rglob("*") if p.is_file()]


def test_an_index_without_fields_stores_nothing_of_them(tmp_path: Path) -> None:
    create(tmp_path / "new")
    Engine.open(tmp_path / "new").add([Document("a", "b")])
    assert b"fields" not in (tmp_path / "new" / manifests.NAME).read_bytes()
    assert {p.parent.parent.name for p in (tmp_path / "new").rglob("*.postings")} == {"text"}


def test_tune_chooses_and_stores_the_weights_of_fields(tmp_path: Path) -> None:
    create(tmp_path / "index", bm25=Bm25Parameters(fields=(Field("title"), Field("text"))))
    engine = Engine.open(tmp_path / "index")
    # Each word is the title of one document, and occurs three times in the text of the next one.
    engine.add(Document(f"d{i}", f"word{(i + 1) % 40} " * 3, f"word{i}") for i in range(40))
    queries = [Query(f"q{i}", f"word{i}") for i in range(40)]
    qrels = {f"q{i}": {f"d{i}": 1.0} for i in range(40)}
    tuning = engine.tune(queries, qrels)
    assert tuning.default.means["mrr"] < 1 == tuning.chosen.means["mrr"]
    stored = Engine.open(tmp_path / "index").collection.manifest.bm25
    weights = {field.name: field.weight for field in stored.fields}
    assert weights["title"] > weights["text"]
    assert [hits.ids[0] for hits in engine.search([q.text for q in queries], 1).hits] == [
        f"d{i}" for i in range(40)
    ]
