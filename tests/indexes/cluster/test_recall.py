"""The breadth of approximate vector search on a server: tuned, stored, and used by whoever opens the index."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexes.cluster import retrievers
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.interface import Document, Matrix
from linker.engine import Engine, building
from tests.helpers import HashEncoder
from tests.indexes.cluster.conftest import Make

COUNT, BREADTH, AT_ONCE = 300, 50.0, 4


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The bodies of all searches, as JSON; more than 100 documents are searched approximately, in two breadths.

    A request compares all documents with at most AT_ONCE queries.
    """
    monkeypatch.setattr(retrievers, "EXACT_BELOW", 100)
    monkeypatch.setattr(retrievers, "COMPARED", AT_ONCE * COUNT)
    monkeypatch.setattr(retrievers.ClusterVectors, "GRID", ({"breadth": BREADTH}, {"breadth": 2 * BREADTH}))
    bodies: list[str] = []
    real = ClusterIndex.msearch

    def msearch(self: ClusterIndex, searches: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        texts = [json.dumps(body) for body in searches]
        assert sum('"match_all"' in text for text in texts) <= AT_ONCE
        bodies.extend(texts)
        return real(self, searches)

    monkeypatch.setattr(ClusterIndex, "msearch", msearch)
    return bodies


def filled(engine: Engine) -> Engine:
    engine.add(Document(f"d{n}", f"kisen{n} deras{n % 7} banel{n % 11}") for n in range(COUNT))
    return engine


def assert_tuned(engine: Engine, bodies: list[str], reopen: Callable[[], Engine]) -> None:
    """Check that tuning measures what it says, that the choice is stored, and that it is used afterwards."""
    tuning = engine.tune_recall(0.5, 5, sample=20)
    assert tuning.reached
    assert tuning.held_out
    assert [point.settings for point in tuning.curve.points] == [
        {"breadth": BREADTH},
        {"breadth": 2 * BREADTH},
    ]
    assert all(point.recall > 0.9 for point in tuning.curve.points)
    breadth = tuning.chosen.settings["breadth"]
    for opened in (engine, reopen()):
        assert opened.collection.manifest.search["vectors"] == {"breadth": breadth}
        bodies.clear()
        opened.search("kisen5", 5, mode="dense")
        assert any(f'"k": {int(breadth)}' in body for body in bodies)


def test_the_chosen_breadth_is_stored_and_used(make: Make, asked: list[str]) -> None:
    engine = filled(make("hnsw"))
    assert_tuned(engine, asked, lambda: Engine(engine.directory, encoder=HashEncoder()))
    engine.add([Document("new", "kisen")])  # a later commit keeps it
    assert "breadth" in Engine(engine.directory, encoder=HashEncoder()).collection.manifest.search["vectors"]


def test_next_to_a_directory(
    elastic: str, tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "load_encoder", lambda name, **_: HashEncoder())
    settings = ElasticSettings((elastic,), new_name("recall"))
    building.create(tmp_path / "index", encoder="hash", vectors="elastic-hnsw", elastic=settings)
    try:
        engine = filled(Engine(tmp_path / "index", encoder=HashEncoder()))
        engine.delete(["d1", "d2"])
        assert_tuned(engine, asked, lambda: Engine(tmp_path / "index", encoder=HashEncoder()))
    finally:
        ClusterIndex(settings).drop()


def test_drawn_documents_are_live_and_have_their_own_vectors(make: Make, asked: list[str]) -> None:
    engine = filled(make("hnsw"))
    engine.delete(["d1"])
    ranking = engine.collection.ranking()
    side: Any = ranking.vectors
    vectors, rows = side.retriever.draw(50, 1)
    repeat, _ = side.retriever.draw(50, 1)
    ids = [ranking.rows.ids[row] for row in rows.tolist()]
    texts = [engine.document(id_).full_text for id_ in ids]
    expected: Matrix = HashEncoder().encode(texts)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    np.testing.assert_array_equal(vectors, repeat)
    assert len(set(ids)) == 50
    assert "d1" not in ids
