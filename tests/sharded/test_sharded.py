"""Several directories searched as one: the oracle is one index over all documents, in the same order."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexes import native
from indexes.fusion import Fusion
from indexes.hybrid import Answer, Mode
from indexes.interface import (
    BackendUnavailableError,
    DamagedError,
    Document,
    DuplicateIdError,
    EncoderMismatchError,
    IndexesError,
)
from indexes.sharded import ShardedCollection, join
from indexes.text.parameters import Bm25Parameters, Field
from indexes.text.scoring import Bm25Scorer
from indexes.writer import Writer
from linker import building
from linker.engine import Engine
from linker.errors import InputError
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
            f"d{n}",
            sentence(rng, rng.randint(2, 14)),
            sentence(rng, 2) if n % 3 else "",
            {"lang": rng.choice(["en", "de"]), "likes": rng.randint(0, 99)},
        )
        for n in range(count)
    ]


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


def test_the_plain_loop_answers_alike(
    indexes: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, shards = indexes
    compiled = one.search(queries(), 20, mode="bm25")
    monkeypatch.setattr(native, "load_postings", lambda: None)
    assert_same(compiled, opened(*shards.directories).search(queries(), 20, mode="bm25"))


def test_fields_answer_as_in_one_index(tmp_path: Path) -> None:
    documents = corpus(90)
    options = {"bm25": Bm25Parameters(fields=(Field("title", 2.0), Field("text")))}
    one = Engine(make(tmp_path / "one", documents, **options), encoder=HashEncoder())
    shards = opened(*(make(tmp_path / f"s{n}", documents[n : n + 45], **options) for n in (0, 45)))
    for mode in MODES:
        assert_same(one.search(queries(), 30, mode=mode), shards.search(queries(), 30, mode=mode))
    heavy = options["bm25"].weighted({"title": 0.0, "text": 1.0})
    assert_same(one.search(queries(), 9, bm25=heavy), shards.search(queries(), 9, bm25=heavy))
