"""An index whose BM25, and optionally vectors, are on a real server: the same results, changes, faults."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from indexes.cluster import compare
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.cluster.mapping import index_row, mapping
from indexes.hybrid import Mode
from indexes.interface import (
    BackendUnavailableError,
    BadFilterError,
    Document,
    IndexesError,
)
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store import records
from linker.corpora import Query
from linker.engine import Engine, building
from tests.helpers import HashEncoder, linker, write_corpus
from tests.indexes.cluster.conftest import (
    MODES,
    QUERIES,
    Make,
    assert_same,
    assert_same_answers,
    assert_same_bm25,
    assert_same_phrases,
    documents,
    embedded,
)


@pytest.fixture
def dropped(elastic: str) -> Iterator[list[Path]]:
    """Directories whose server indexes are dropped at the end of the test."""
    directories: list[Path] = []
    yield directories
    for directory in directories:
        if not (directory / manifests.NAME).exists():  # a test dropped it
            continue
        settings = ElasticSettings.from_json(manifests.load(directory).elastic)
        store = ClusterIndex(ElasticSettings((elastic,), settings.index), timeout=60)
        store.drop()
        store.drop(numberings=True)
        store.close()


@pytest.fixture
def make(elastic: str, dropped: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make an empty index on the server; `vectors` "none" leaves out the encoder."""
    monkeypatch.setattr(building, "load_encoder", lambda name, **_: HashEncoder())
    monkeypatch.setenv("LINKER_ELASTIC_TIMEOUT", "60")

    def made(vectors: str = "flat", language: str = "english", shards: int = 1) -> Engine:
        directory = tmp_path / f"elastic-{vectors}-{len(dropped)}"
        settings = ElasticSettings((elastic,), new_name("test"), shards)
        encoder = "none" if vectors == "none" else "hash"
        building.create(directory, encoder=encoder, vectors=vectors, language=language, elastic=settings)
        dropped.append(directory)
        return Engine(directory, encoder=HashEncoder())

    return made


def differences(engine: Engine) -> list[str]:
    return compare(engine.directory, manifests.load(engine.directory)).damage


@pytest.mark.parametrize("vectors", ["flat", "elastic-flat", "elastic-int8_hnsw"])
def test_moving_to_the_server_changes_no_answer(make: Make, tmp_path: Path, vectors: str) -> None:
    mine = make(vectors)
    assert_same_answers(mine, embedded(tmp_path), tmp_path)
    assert differences(mine) == []


def test_long_texts_rank_as_in_a_directory_to_the_last_bit(make: Make, tmp_path: Path) -> None:
    assert_same_bm25(make("none", shards=2), embedded(tmp_path))


def test_an_unknown_field_is_an_error_as_in_a_directory(make: Make, tmp_path: Path) -> None:
    for engine in (make(), embedded(tmp_path)):
        engine.add([*documents(5, folder=tmp_path), Document("long", "x", metadata={"essay": "x" * 999})])
        assert len(engine.search(QUERIES[0], where="lang!=en|de|fr|es|essay").hits) == 1
        assert engine.search("x", where={"essay": "x" * 999}).hits[0].ids == ("long",)
        with pytest.raises(BadFilterError, match="no document has the field 'groop': did you mean 'group'"):
            engine.search("x", where="groop>3")


def test_an_index_of_an_earlier_version_names_the_remedy_which_fills_it_again(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def earlier(*arguments: Any) -> dict[str, Any]:
        found = mapping(*arguments)
        found["properties"]["terms"].pop("store")
        found["_meta"]["linker"]["format"] = 3
        return found

    texts = documents(40, folder=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("indexes.cluster.index.mapping", earlier)
        patch.setattr(ClusterIndex, "outdated", lambda _: "")
        engine = make("elastic-hnsw")
        engine.add(texts[:30])
    engine = Engine(engine.directory, encoder=HashEncoder())
    remedy = "earlier version: fill it again with `linker index rebuild`"
    with pytest.raises(IndexesError, match=remedy):
        engine.search(texts[7].full_text, mode="bm25")
    with pytest.raises(IndexesError, match=remedy):
        engine.add(texts[30:])
    verified = linker("index", "verify", engine.directory, check=None)
    assert verified.returncode
    assert "linker index rebuild" in verified.stdout + verified.stderr
    linker("index", "rebuild", engine.directory)
    engine.add(texts[30:])
    assert engine.search(texts[7].full_text, 1, mode="bm25").hits[0].ids == (texts[7].id,)
    assert in_the_graph(engine.directory) == len(engine) == 40


@pytest.mark.parametrize(
    ("language", "texts", "query"),
    [
        ("german", ["Die Häuser der Straße", "Ein Haus", "Strassen und häusern"], "das Haus in der Straße"),
        ("turkish", ["İstanbul ışıkları", "ışık ılık", "istanbul"], "ISTANBUL IŞIK"),
        ("russian", ["Москва слезам не верит", "московские улицы", "слёзы"], "слезы москвы"),
        ("chinese", ["北京大学生前来应聘", "大学", "北京"], "北京大学"),
        ("arabic", ["كتاب الكتب", "مكتبة", "الكتاب"], "الكتاب"),
        ("none", ["The cat's cafe\u0301", "naïve CAFÉ", "the THE"], "the café"),
    ],
)
def test_every_language_ranks_as_the_embedded_side(
    make: Make, tmp_path: Path, language: str, texts: list[str], query: str
) -> None:
    mine, theirs = make(language=language), embedded(tmp_path, language)
    for engine in (mine, theirs):
        engine.add([Document(str(i), text) for i, text in enumerate(texts)])
    assert len(theirs.search(query, mode="bm25").hits[0])
    assert_same(*(e.search([query, *texts], mode="bm25") for e in (mine, theirs)))


def test_an_open_index_goes_on_beside_a_writer(make: Make, tmp_path: Path) -> None:
    engine = make("elastic-flat")
    texts = documents(50, folder=tmp_path)
    engine.add(texts)
    reader = Engine(engine.directory, encoder=HashEncoder(), follow=False)
    before = [set(reader.search(QUERIES, 50, mode=mode).hits[0].ids) for mode in MODES]
    engine.add(documents(50, "later", folder=tmp_path))
    after = [set(reader.search(QUERIES, 50, mode=mode).hits[0].ids) for mode in MODES]
    assert after == before  # new documents are left out, not half included
    engine.delete([d.id for d in texts[:10]])
    assert len(reader.search(QUERIES[0], 50, mode="dense").hits[0]) == 40


def in_the_graph(directory: Path) -> int:
    """Count the documents that have a vector for the graph."""
    store = ClusterIndex(ElasticSettings.from_json(manifests.load(directory).elastic), timeout=60)
    count = store.client.count(index=store.settings.index, query={"exists": {"field": "near"}})["count"]
    store.close()
    return int(count)


def test_tune_find_info_verify_and_compact(make: Make, tmp_path: Path) -> None:
    engine = make("elastic-hnsw", shards=2)
    texts = documents(80, folder=tmp_path)
    engine.add(texts)
    queries = [Query(f"q{i}", d.text) for i, d in enumerate(texts[:20])]
    tuning = engine.tune(queries, {f"q{i}": {d.id: 1} for i, d in enumerate(texts[:20])})
    assert tuning.chosen.means["mrr"] == 1
    engine.delete([texts[0].id, texts[5].id])
    assert "shards 2" in linker("index", "info", engine.directory).stdout
    index = manifests.load(engine.directory).elastic["index"]
    degrading = Engine(engine.directory, encoder=HashEncoder())
    linker("index", "compact", engine.directory)
    assert manifests.load(engine.directory).elastic["index"] == f"{index}.2"
    assert in_the_graph(engine.directory) == 78
    assert "holds the same documents" in linker("index", "verify", engine.directory).stdout
    compacted = Engine(engine.directory, encoder=HashEncoder())
    assert compacted.search(texts[7].full_text, 1).hits[0].ids == (texts[7].id,)
    assert len(compacted) == 78
    both: tuple[tuple[Engine, Mode], ...] = ((engine, "bm25"), (degrading, "hybrid"))
    for opened, mode in both:  # their rows are numbered differently
        answer = opened.search(texts[7].full_text, 1, mode=mode)
        assert (answer.hits[0].ids, answer.degraded) == ((texts[7].id,), "")
    store = ClusterIndex(ElasticSettings.from_json(manifests.load(engine.directory).elastic), timeout=60)
    assert store.exists()
    assert f"on {index}.2" in linker("index", "drop", engine.directory, "--yes").stdout
    assert not store.exists()
    assert not store.client.indices.get(index=f"{index}*").body
    store.close()
    assert not engine.directory.exists()


def test_nothing_is_dropped_when_the_server_is_away(tmp_path: Path) -> None:
    settings = ElasticSettings(("http://127.0.0.1:9",), "away")
    (tmp_path / "i").mkdir()
    storage.replace_manifest(tmp_path / "i", records.Manifest(elastic=settings.to_json()))
    assert "127.0.0.1:9" in linker("index", "drop", tmp_path / "i", "--yes", check=1).stderr
    assert manifests.load(tmp_path / "i").elastic["index"] == "away"


@pytest.mark.parametrize("vectors", ["flat", "elastic-flat"])
def test_phrases_are_found_as_in_a_directory(make: Make, tmp_path: Path, vectors: str) -> None:
    mine = make(vectors)
    assert_same_phrases(mine, embedded(tmp_path), tmp_path)
    mine.delete(["gone"])
    (hits,) = mine.search('"and then deras kisen"', 20, phrases=True).hits
    assert hits.ids == ("in-order",)


def test_verify_names_what_the_server_lost_and_rebuild_restores_it(make: Make, tmp_path: Path) -> None:
    engine = make("elastic-flat")
    texts = documents(40, folder=tmp_path)
    engine.add(texts)
    engine.delete([texts[3].id])
    answers = [engine.search(QUERIES, 40, mode=mode) for mode in MODES]
    settings = ElasticSettings.from_json(manifests.load(engine.directory).elastic)
    store = ClusterIndex(settings, timeout=60)
    store.client.delete(index=settings.index, id="7")
    store.client.index(index=settings.index, id="8", document={"row": 8, "id": "other", "terms": "altered"})
    store.client.indices.refresh(index=settings.index)
    run = linker("index", "verify", engine.directory, check=1)
    assert "38 documents instead of 39" in run.stdout
    assert f"{texts[7].id!r} is missing" in run.stdout
    assert f"{texts[8].id!r} differs" in run.stdout
    with pytest.raises(BackendUnavailableError, match=r"38 of 39.*linker index rebuild"):
        engine.add([Document("new", "text")])
    assert "39 documents" in linker("index", "rebuild", engine.directory, "--shards", "2").stdout
    assert differences(engine) == []
    assert manifests.load(engine.directory).elastic["shards"] == 2
    assert store.current().endswith("-g000002")
    assert list(store.client.indices.get(index=f"{settings.index}-g*")) == [store.current()]
    store.close()
    again = Engine(engine.directory, encoder=HashEncoder())
    for mode, before in zip(MODES, answers, strict=True):
        for now, then in zip(again.search(QUERIES, 40, mode=mode).hits, before.hits, strict=True):
            assert set(now.ids) == set(then.ids)
    for old, new in zip(answers[0].hits, engine.search(QUERIES, 40, mode="bm25").hits, strict=True):
        assert set(old.ids) == set(new.ids)  # an index that stayed open follows the alias
    engine.add([Document("new", "brandnew text")])
    assert engine.search("brandnew", mode="bm25").hits[0].ids == ("new",)


def test_rows_beside_the_commit_are_a_note_and_no_damage(make: Make, tmp_path: Path) -> None:
    engine = make("none")
    texts = documents(30, folder=tmp_path)
    engine.add(texts)
    engine.delete([texts[2].id])
    store = ClusterIndex(ElasticSettings.from_json(manifests.load(engine.directory).elastic), timeout=60)
    # The last document was removed here, but not yet on the server.
    for row, id_ in ((30, "sent"), (31, "but"), (32, "not committed"), (2, texts[2].id)):
        store.bulk.put(index_row(Document(id_, "banel"), row, ["banel"], {}))
    store.flush()
    done = linker("index", "verify", engine.directory)
    assert "4 rows that are not in the commit" in done.stderr
    assert "holds the same documents" in done.stdout
    store.client.delete(index=store.settings.index, id="7", refresh=True)
    damaged = linker("index", "verify", engine.directory, check=1).stdout
    assert "28 documents instead of 29" in damaged
    assert f"{texts[7].id!r} is missing" in damaged
    store.close()


def run_killed(point: str, *arguments: str | Path) -> None:
    """Run a command that dies at a point."""
    done = subprocess.run(
        [sys.executable, "-m", "linker", *map(str, arguments)],
        env=os.environ | {"LINKER_FAULT": point}, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr


KILLS = {
    "add": ("commit.text", "commit.prepared", "elastic.settle"),
    "delete": ("commit.prepared", "elastic.settle"),
    "compact": ("compact.text", "commit.prepared", "elastic.settle"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("command", "point"), [(c, p) for c, points in KILLS.items() for p in points])
def test_a_killed_change_is_whole_or_absent(make: Make, tmp_path: Path, command: str, point: str) -> None:
    engine = make("none")
    texts = documents(30, folder=tmp_path)
    engine.add(texts)
    engine.delete([texts[1].id])
    arguments: list[str | Path] = [engine.directory]
    if command == "add":
        arguments.append(write_corpus(tmp_path / "more.jsonl", 10, prefix="more"))
    elif command == "delete":
        arguments.append(texts[2].id)
    run_killed(point, "index", command, *arguments)
    manifest = manifests.load(engine.directory)
    committed = point == "elastic.settle"
    expected = {"add": 39 if committed else 29, "delete": 28 if committed else 29, "compact": 29}[command]
    assert manifest.documents == expected
    reader = Engine(engine.directory)
    known = set(reader.collection.rows.ids)
    for hits in reader.search(QUERIES, 100).hits:
        assert set(hits.ids) <= known
        assert texts[1].id not in hits.ids
        assert not committed or command != "delete" or texts[2].id not in hits.ids
    everything = " ".join(sorted({word for d in texts for word in d.full_text.split()}))
    assert len(reader.search(everything, 100).hits[0]) == expected
    reader.add([Document("after", "kisen banel")])
    assert differences(reader) == []
    assert len(reader.search(everything, 100).hits[0]) == expected + 1


@pytest.mark.slow
def test_an_interrupted_build_resumes_on_the_server(
    elastic: str, dropped: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKER_ELASTIC_TIMEOUT", "60")
    corpus, out = write_corpus(tmp_path / "c.jsonl", 1000), tmp_path / "index"
    command = ("index", "build", corpus, "--out", out, "--backend", "elastic", "--url", elastic)
    run_killed("commit.text:2", *command, "--commit-every", "300")
    dropped.append(out)
    interrupted = manifests.load(out)
    assert (interrupted.documents, interrupted.build.complete) == (512, False)
    linker("index", "build", corpus, "--out", out, "--resume", check=1)  # another backend
    linker(*command, "--commit-every", "300", "--resume")
    assert manifests.load(out).documents == 1000
    assert manifests.load(out).elastic == interrupted.elastic
    assert "holds the same documents" in linker("index", "verify", out).stdout


def test_wrong_options_and_a_server_that_is_not_there(tmp_path: Path) -> None:
    out = tmp_path / "index"
    build = ("index", "build", write_corpus(tmp_path / "c.jsonl", 3), "--out", out)
    on_elastic = (*build, "--backend", "elastic")
    assert "needs --url" in linker(*on_elastic, check=2).stderr
    assert "--backend elastic" in linker(*build, "--shards", "2", check=2).stderr
    assert "does not answer" in linker(*on_elastic, "--url", "http://127.0.0.1:9", check=1).stderr
    assert not out.exists()
    done = linker(*on_elastic, "--url", "http://me:hush@127.0.0.1:9", check=1)
    assert "LINKER_ELASTIC_PASSWORD" in done.stderr
    assert "hush" not in done.stderr
    with pytest.raises(IndexesError, match="not a valid index name"):
        ClusterIndex(ElasticSettings(("http://127.0.0.1:9",), "Big*"))
