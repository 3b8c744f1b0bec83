"""Learned rankers and P(link) of an index on a cluster: the same as in a directory, and they follow the documents."""

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


def pair(make: Make, where: Path, vectors: str) -> tuple[Engine, Engine]:
    """Return the same index on the cluster and in a directory."""
    building.create(where, encoder="none" if vectors == "none" else "hash")
    engines = make(vectors), Engine(where, encoder=HashEncoder())
    for engine in engines:
        engine.add(documents()[:100])
        engine.add(documents()[100:])
    return engines


def same(mine: Answer, theirs: Answer) -> None:
    """Check that ids, scores and P(no link) are equal, bit for bit."""
    assert mine.degraded == theirs.degraded == ""
    for a, b in zip(mine.hits, theirs.hits, strict=True):
        assert (a.ids, a.scores.tolist(), a.no_match) == (b.ids, b.scores.tolist(), b.no_match)


@pytest.mark.parametrize(
    ("server", "vectors", "settings"),
    [("elastic", "flat", {}), ("opensearch", "none", {"date_field": "date", "direction": "before"})],
    indirect=["server"],
)
def test_a_ranker_learns_and_ranks_as_in_a_directory(
    make: Make, tmp_path: Path, vectors: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_documents, "MOST", 10)  # the ids of all documents are never read
    mine, theirs = pair(make, tmp_path / "embedded", vectors)
    queries, judged = judged_queries()
    trained = [e.train_ranker(queries, judged, PoolSettings(**settings)) for e in (mine, theirs)]
    saved = [folder.save(t.ranker, t.text, tmp_path / str(n)) for n, t in enumerate(trained)]
    assert saved[0].fingerprint == saved[1].fingerprint
    for engine in (mine, theirs):
        engine.store_ranker(tmp_path / "1")
    other, texts = Engine(mine.directory, encoder=HashEncoder()), [query.text for query in queries[:40]]
    answer = other.search(texts, 3)
    assert answer.ranker == saved[1].fingerprint
    assert answer.probabilities is not None
    same(answer, theirs.search(texts, 3))
    mine_explained, theirs_explained = (
        e.ranked_search(saved[1]).explain(texts[0])[2] for e in (other, theirs)
    )
    assert mine_explained == theirs_explained


def test_a_ranker_follows_the_documents(make: Make, tmp_path: Path) -> None:
    mine, theirs = pair(make, tmp_path / "embedded", "none")
    asked, judged = judged_queries()
    trained = theirs.train_ranker(asked, judged)
    folder.save(trained.ranker, trained.text, tmp_path / "model")
    mine.store_ranker(tmp_path / "model")
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
