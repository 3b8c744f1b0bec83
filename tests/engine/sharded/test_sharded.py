"""Several directories searched as one: the oracle is one index over all documents, in the same order."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from indexes.fusion import Fusion
from indexes.hybrid import Answer, Mode
from indexes.interface import DamagedError, Document, DuplicateIdError, EncoderMismatchError, IndexesError
from indexes.sharded import agreement, join
from indexes.store.records import Manifest
from indexes.text.parameters import Bm25Parameters, Field
from indexes.writer import Writer
from linker import Question, find
from linker.base.errors import InputError
from linker.engine import building
from linker.engine.engine import Engine
from linker.scoring import ranking
from tests.helpers import HashEncoder, sentence

MODES: tuple[Mode, ...] = ("bm25", "dense", "hybrid")


def make(
    directory: Path, documents: Sequence[Document], encoder: HashEncoder | None = None, **options: Any
) -> Path:
    """Make an index of documents in several commits, so that it has several segments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "load_encoder", lambda name, **_: encoder or HashEncoder())
        building.create(directory, **{"encoder": "hash", **options})
    with Engine(directory, encoder=encoder or HashEncoder()) as engine:
        for start in range(0, len(documents), 40):
            engine.add(documents[start : start + 40])
    return directory


def corpus(count: int, seed: int = 0) -> list[Document]:
    rng = random.Random(seed)
    return [
        Document(
            f"d{n}", sentence(rng, rng.randint(2, 14)), sentence(rng, 2) if n % 3 else "",
            {"lang": rng.choice(["en", "de"]), "likes": rng.randint(0, 99)},
        )
        for n in range(count)
    ]  # fmt: skip


def queries(count: int = 12) -> list[str]:
    rng = random.Random(7)
    return [sentence(rng, rng.randint(1, 6)) for _ in range(count)]


def opened(*directories: Path, **options: Any) -> Engine:
    return Engine(list(directories), encoder=HashEncoder(), **options)


def assert_same(one: Answer, other: Answer) -> None:
    assert [h.ids for h in one.hits] == [h.ids for h in other.hits]
    for a, b in zip(one.hits, other.hits, strict=True):
        assert a.scores.tolist() == b.scores.tolist()
    assert (one.mode, one.degraded, one.notes) == (other.mode, other.degraded, other.notes)


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Engine, Engine]:
    """One index over 240 documents, and three directories that hold them: 100, 1 and 139, some of them deleted."""
    folder, documents = tmp_path_factory.mktemp("indexes"), corpus(240)
    parts = [documents[:100], documents[100:101], documents[101:]]
    one = make(folder / "one", documents, positions=True)
    shards = [make(folder / f"s{n}", part, positions=True) for n, part in enumerate(parts)]
    gone = ["d3", "d99", "d150", "d151", "d239"]
    Engine(one).delete(gone)
    for shard, ids in zip(shards, (gone[:2], [], gone[2:]), strict=True):
        if ids:
            Engine(shard).delete(ids)
    return Engine(one, encoder=HashEncoder()), opened(*shards)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("k", [1, 10, 150, 1000])
def test_answers_are_those_of_one_index(indexes: tuple[Engine, Engine], mode: Mode, k: int) -> None:
    one, shards = indexes
    assert_same(one.search(queries(), k, mode=mode), shards.search(queries(), k, mode=mode))


@pytest.mark.parametrize("where", ["lang=en", "likes>50", "lang!=de\nlikes<=90", "likes>1000", "lang=en|de"])
@pytest.mark.parametrize("mode", MODES)
def test_filters_answer_as_in_one_index(indexes: tuple[Engine, Engine], mode: Mode, where: str) -> None:
    one, shards = indexes
    assert_same(*(e.search(queries(), 30, mode=mode, where=where.split("\n")) for e in (one, shards)))


def test_parameters_phrases_and_vectors_answer_as_in_one_index(indexes: tuple[Engine, Engine]) -> None:
    one, shards = indexes
    quoted = [
        f'"{" ".join(d.text.split()[:2])}" {q}' for d, q in zip(corpus(240)[90:], queries(), strict=False)
    ]
    vectors = HashEncoder().encode(queries())
    for options in (
        {"texts": queries(), "bm25": Bm25Parameters(0.4, 0.2, 3)},
        {"texts": quoted, "phrases": True},
        {"vectors": vectors},
        {"texts": queries(), "vectors": vectors, "where": "lang=de"},
    ):
        assert_same(one.search(k=20, **options), shards.search(k=20, **options))
    assert sum(map(len, shards.search(quoted, phrases=True).hits)) >= len(quoted)


def test_everything_else_reads_the_rows_of_all(indexes: tuple[Engine, Engine]) -> None:
    one, shards = indexes
    assert len(shards) == len(one) == 235
    assert list(shards.documents()) == list(one.documents())
    assert list(shards.documents("lang=de")) == list(one.documents("lang=de"))
    assert shards.fields == one.fields
    assert "d3" not in shards
    assert shards.document("d238") == one.document("d238")
    for hits in shards.search(queries()[:2], 3).hits:
        assert [hit.document for hit in hits] == [one.document(hit.id) for hit in hits]
    mine, theirs = shards.collection, one.collection
    np.testing.assert_array_equal(mine.documents.vectors(16)[0], theirs.documents.vectors(16)[0])
    query = theirs.forward.words(queries()[0])
    rows = np.arange(240)
    np.testing.assert_array_equal(
        mine.forward.describe(mine.forward.words(queries()[0]), rows), theirs.forward.describe(query, rows)
    )
    weights = mine.linear.vector(one.document("d8"))
    assert weights.values.tolist() == theirs.linear.vector(one.document("d8")).values.tolist()


def test_fields_answer_as_in_one_index(tmp_path: Path) -> None:
    documents, bm25 = corpus(90), Bm25Parameters(fields=(Field("title", 2.0), Field("text")))
    one = Engine(make(tmp_path / "one", documents, bm25=bm25), encoder=HashEncoder())
    shards = opened(*(make(tmp_path / f"s{n}", documents[n : n + 45], bm25=bm25) for n in (0, 45)))
    for mode in MODES:
        assert_same(one.search(queries(), 30, mode=mode), shards.search(queries(), 30, mode=mode))
    heavy = bm25.weighted({"title": 0.0, "text": 1.0})
    assert_same(one.search(queries(), 9, bm25=heavy), shards.search(queries(), 9, bm25=heavy))


def pair(folder: Path, **options: Any) -> tuple[Path, Path]:
    """Make two directories of 30 documents each."""
    documents = corpus(60)
    return make(folder / "a", documents[:30], **options), make(folder / "b", documents[30:], **options)


def test_directories_that_do_not_fit_are_both_named(tmp_path: Path) -> None:
    documents = corpus(4)
    a = make(tmp_path / "a", documents[:2])
    others = {
        "analysed in different ways": make(tmp_path / "g", documents[2:], language="german"),
        "from different encoders": make(tmp_path / "e", documents[2:], HashEncoder(16, "other")),
        "fields of BM25 differ": make(
            tmp_path / "f", documents[2:], bm25=Bm25Parameters(fields=(Field("text"),))
        ),
    }
    for words, other in others.items():
        with pytest.raises(IndexesError, match=f"{a} and {other} cannot be searched together.*{words}"):
            opened(a, other)
        with pytest.raises(IndexesError, match=words):
            join(tmp_path / "all", [a, other])
    with pytest.raises(EncoderMismatchError, match="fingerprint hash-16"):
        opened(a, others["from different encoders"])
    with pytest.raises(IndexesError, match="named twice"):
        opened(a, tmp_path / "." / "a")
    with pytest.raises(IndexesError, match="name the directory"):
        Engine.open([])


def test_an_id_in_two_directories_is_an_error_until_one_is_deleted(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    Engine(b, encoder=HashEncoder()).add([Document("d7", "rain")])
    with pytest.raises(DuplicateIdError, match=f"{a} and {b} both hold 'd7'.*linker index delete"):
        opened(a, b)
    Engine(a).delete(["d7"])
    shards = opened(a, b)
    assert shards.document("d7").text == "rain"
    assert len(shards) == 60


def test_a_directory_that_is_gone_is_left_out_and_named(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    text = corpus(60)[40].full_text
    whole = opened(a, b).search(text, mode="bm25")
    b.rename(tmp_path / "elsewhere")
    shards = opened(a, b)
    answer = shards.search(text, mode="bm25")
    assert answer.degraded.startswith(f"{b} unavailable: {b} holds no index")
    assert_same(Engine(a).search(text, mode="bm25"), Answer(answer.hits, answer.mode))
    with pytest.raises(IndexesError, match="holds no index"):
        opened(a, b, on_failure="fail")
    with pytest.raises(IndexesError, match="holds no index"):
        opened(b, tmp_path / "none")
    assert not shards.refresh()
    (tmp_path / "elsewhere").rename(b)
    assert_same(shards.search(text, mode="bm25"), whole)


@pytest.mark.parametrize("name", ["vectors.f32", ".postings"])
def test_a_file_that_is_cut_off_takes_its_directory_out(tmp_path: Path, name: str) -> None:
    a, b = pair(tmp_path)
    with Writer.open(b) as writer:
        writer.compact()
    shards, strict = opened(a, b), opened(a, b, on_failure="fail")
    assert not shards.search("banel", mode="hybrid").degraded
    (path,) = (path for path in b.rglob("*") if path.name.endswith(name))
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 4096 if path.stat().st_size > 8192 else 4)
    vector = HashEncoder().encode(["banel"])
    for _ in range(2):
        answer = shards.search("banel", vectors=vector)
        assert answer.degraded.startswith(f"{b} unavailable: {path}: ")
        assert {hit.id for hit in answer.hits[0]} <= {d.id for d in corpus(60)[:30]}
    with pytest.raises(DamagedError, match="cut off"):
        strict.search("banel", mode="hybrid")
    path.write_bytes(content)
    (b / "manifest.json").touch()
    assert not shards.search("banel", mode="hybrid").degraded


def test_commits_to_any_directory_are_seen_and_none_can_be_made(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    shards = opened(a, b)
    generation = shards.collection.manifest.generation
    Engine(b, encoder=HashEncoder()).add([Document("new", "a volcano erupts")])
    assert shards.search("volcano", mode="bm25").hits[0].ids == ("new",)
    assert shards.collection.manifest.generation > generation
    assert not shards.refresh()
    for change in (
        lambda: shards.add([Document("x", "y")]),
        lambda: shards.delete(["new"]),
        lambda: shards.tune([], {}),
    ):
        with pytest.raises(InputError, match="are open together, which allows reading only"):
            change()
    shards.close()
    with pytest.raises(IndexesError, match="closed"):
        shards.search("volcano")


def store(directory: Path, **search: Any) -> None:
    with Writer.open(directory) as writer:
        writer.commit(search={**writer.manifest.search, **search})


def test_settings_are_those_of_the_first_and_the_answer_says_so(tmp_path: Path) -> None:
    a, b = pair(tmp_path)
    fusion = Fusion("rrf", (1.0, 2.0))
    store(a, mode="hybrid", fusion=fusion.to_json())
    for first, other, expected in ((a, b, fusion), (b, a, Fusion())):
        shards = opened(first, other)
        assert shards.collection.hybrid.settings.fusion == expected
        (note,) = shards.search("banel").notes
        assert f"are those of {first}: {other} was tuned differently" in note
    store(b, mode="hybrid", fusion=fusion.to_json())
    assert opened(a, b).search("banel").notes == ()


def test_a_ranker_counts_where_all_hold_the_same(tmp_path: Path) -> None:
    pooled = Path(ranking.__file__).parent / "pooled"
    a, b = pair(tmp_path, positions=True)
    Engine(a, encoder=HashEncoder()).store_ranker(pooled)
    answer = opened(a, b).search("banel deras")
    assert not answer.ranker
    assert "ranker is not used" in answer.notes[0]
    Engine(b, encoder=HashEncoder()).store_ranker(pooled)
    shards = opened(a, b)
    ranked = shards.search("banel deras")
    assert (bool(ranked.ranker), ranked.notes) == (True, ())
    one = Engine(make(tmp_path / "one", corpus(60), positions=True), encoder=HashEncoder())
    one.store_ranker(pooled)
    assert_same(one.search(queries(), 20), shards.search(queries(), 20))


def test_a_calibration_of_one_directory_is_left_out(tmp_path: Path) -> None:
    one = Manifest(search={"calibration": "calibration/1", "mode": "bm25"})
    manifest, remarks = agreement.joint([(tmp_path / "a", one), (tmp_path / "b", one)])
    assert manifest.search == {"mode": "bm25"}
    assert remarks == ("no P(link): a calibration is valid only for the directory that it was fitted on",)


def test_lexicons_count_where_all_directories_hold_the_same(tmp_path: Path) -> None:
    one, other = (Manifest(search={"lexicon": f"lexicon/{digit * 16}"}) for digit in "ab")
    same, remarks = agreement.joint([(tmp_path / "a", one), (tmp_path / "b", one)])
    assert same.search == one.search and not remarks
    unlike, remarks = agreement.joint([(tmp_path / "a", one), (tmp_path / "b", other)])
    assert not unlike.search and "the stored lexicon is not used" in remarks[0]


@pytest.mark.parametrize("static", [True, False])
def test_find_asks_the_same_in_the_same_order(indexes: tuple[Engine, Engine], static: bool) -> None:
    seeds = {"s": corpus(240)[8].full_text, "t": corpus(240)[120].full_text}
    relevant = {d.id for d in corpus(240) if "banel" in d.full_text}
    asked: list[list[str]] = []
    for engine in indexes:
        ids: list[str] = []

        def judge(question: Question, ids: list[str] = ids) -> Literal["relevant", "not"]:
            ids.append(question.document.id)
            return "relevant" if question.document.id in relevant else "not"

        report = find(engine, seeds, judge, max_read=40, static=static)
        assert report.population == 235 * (2 if static else 1)
        asked.append(ids)
    assert asked[0] == asked[1]
    assert len(asked[0]) == 40
