"""A ranker over an index whose BM25 is on a real server: the features come from the directory, and the order too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from linker.engine import Engine, building
from linker.scoring.ranking import folder
from tests.scoring.ranking.synthetic import documents, judged_queries

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
