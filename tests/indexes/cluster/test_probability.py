"""A calibration over an index whose BM25 is on a real server: the scores are the server's, and P(link) follows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from linker.engine import Engine, building
from linker.scoring.probability import folder
from tests.scoring.ranking.synthetic import documents, judged_queries


def test_probabilities_come_from_the_servers_scores(
    elastic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKER_ELASTIC_TIMEOUT", "60")
    settings = ElasticSettings((elastic,), new_name("calibrated"))
    asked, judged = judged_queries()
    try:
        building.create(tmp_path / "index", elastic=settings)
        engine = Engine(tmp_path / "index")
        engine.add(documents())
        folder.save(engine.calibrate(asked, judged), tmp_path / "calibration")
        engine.store_calibration(tmp_path / "calibration")
        answer = engine.search([q.text for q in asked], 3)
        assert answer.probabilities is not None and answer.calibration
        right = [h.ids[0] in judged[q.id] for q, h in zip(asked, answer.hits, strict=True)]
        assert abs(np.mean([p[0] for p in answer.probabilities]) - np.mean(right)) < 0.1
    finally:
        store = ClusterIndex(settings, timeout=60)
        store.drop()
        store.drop(numberings=True)
        store.close()
