"""Learned rankers and P(link) of an index on a cluster: the same as in a directory, and they follow the documents."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexes.cluster import documents as cluster_documents
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.hybrid import Answer
from indexes.interface import Document
from indexes.writer import writer_of
from linker.engine import Engine, building
from linker.scoring.ranking import folder
from linker.scoring.ranking.candidates import PoolSettings
from tests.helpers import HashEncoder
from tests.indexes.cluster.conftest import Make
from tests.scoring.ranking.synthetic import documents, judged_queries

pytest.importorskip("lightgbm")


ASKED = 80  # queries to learn from
Taught = Callable[[str, PoolSettings], tuple[Engine, Path]]


def filled(engine: Engine) -> Engine:
    engine.add(documents()[:100])
    engine.add(documents()[100:])
    return engine


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Taught:
    """Give an index in a directory and the ranker that it learned and uses; each is made once for all servers."""

    @functools.cache
    def made(vectors: str, settings: PoolSettings) -> tuple[Engine, Path]:
        where = tmp_path_factory.mktemp("taught")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(building, "load_encoder", lambda name, **_: HashEncoder())
            building.create(where / "index", encoder="none" if vectors == "none" else "hash")
        engine = filled(Engine(where / "index", encoder=HashEncoder()))
        asked, judged = judged_queries()
        trained = engine.train_ranker(asked[:ASKED], judged, settings)
        folder.save(trained.ranker, trained.text, where / "ranker")
        engine.store_ranker(where / "ranker")
        return engine, where / "ranker"

    return made


def same(mine: Answer, theirs: Answer) -> None:
    """Check that ids, scores and P(no link) are equal, bit for bit."""
    assert mine.degraded == theirs.degraded == ""
    for a, b in zip(mine.hits, theirs.hits, strict=True):
        assert (a.ids, a.scores.tolist(), a.no_match) == (b.ids, b.scores.tolist(), b.no_match)


@pytest.mark.parametrize(
    ("vectors", "settings"),
    [("none", {}), ("flat", {}), ("none", {"date_field": "date", "direction": "before"})],
)
def test_a_ranker_learns_and_ranks_as_in_a_directory(
    make: Make, taught: Taught, tmp_path: Path, vectors: str, settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(cluster_documents, "MOST", 10)  # the ids of all documents are never read
    theirs, ranker = taught(vectors, PoolSettings(**settings))
    mine = filled(make(vectors))
    asked, judged = judged_queries()
    trained = mine.train_ranker(asked[:ASKED], judged, PoolSettings(**settings))
    saved = folder.save(trained.ranker, trained.text, tmp_path / "mine")
    assert saved.fingerprint == folder.load(ranker).fingerprint
    mine.store_ranker(ranker)
    other, texts = Engine(mine.directory, encoder=HashEncoder()), [query.text for query in asked[:40]]
    found = other.search(texts, 3)
    assert found.ranker == saved.fingerprint
    assert found.probabilities is not None
    same(found, theirs.search(texts, 3))
    mine_explained, theirs_explained = (e.ranked_search(saved).explain(texts[0])[2] for e in (other, theirs))
    assert mine_explained == theirs_explained


def test_a_ranker_follows_the_documents(make: Make, taught: Taught) -> None:
    mine, asked = filled(make("none")), judged_queries()[0]
    mine.store_ranker(taught("none", PoolSettings())[1])
    other = Engine(mine.directory)
    best = other.search(asked[0].text, 3).hits[0].ids[0]
    with writer_of(mine.directory) as writer:
        writer.remove([best])
        writer.add([Document("copy", next(d.text for d in documents() if d.id == best))], None)
        writer.commit()
    assert other.search(asked[0].text, 3).hits[0].ids[0] == "copy"
    with writer_of(mine.directory) as writer:
        writer.remove([d.id for d in documents() if d.id != best])
        writer.commit()
    assert other.search(asked[0].text, 3).hits[0].ids == ("copy",)


pytest.importorskip("lightgbm")


@pytest.mark.parametrize("positions", [True, False])
def test_the_same_links_are_found_on_a_server(
    elastic: str, positions: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKER_ELASTIC_TIMEOUT", "60")
    settings = ElasticSettings((elastic,), new_name("ranker"))
    asked, judged = judged_queries()
    texts = [query.text for query in asked]
    try:
        engines = []
        for name, server in (("embedded", None), ("server", settings)):
            building.create(tmp_path / name, positions=positions, elastic=server)
            engines.append(Engine(tmp_path / name))
            engines[-1].add(documents())
            engines[-1].delete(["d1"])
        assert bool(list((tmp_path / "server").rglob("*.forward"))) == positions
        trained = engines[0].train_ranker(asked, judged)
        ranker = folder.save(trained.ranker, trained.text, tmp_path / "model")
        engines[1].store_ranker(tmp_path / "model")
        local, remote = engines[0].search(texts, 3, reranker=ranker), engines[1].search(texts, 3)
        assert remote.ranker == ranker.fingerprint
        # BM25's last candidates may differ, and with them the features relative to other candidates.
        same = [a.ids[:1] == b.ids[:1] for a, b in zip(local.hits, remote.hits, strict=True)]
        assert np.mean(same) > 0.95
    finally:
        store = ClusterIndex(settings, timeout=60)
        store.drop()
        store.drop(numberings=True)
        store.close()
