"""A learned ranker stored on a cluster: it ranks as in a directory, and follows the documents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linker.engine.remote
from indexes.cluster import RemoteCollection
from indexes.interface import Document
from indexes.writer import writer_of
from linker.engine import Engine, building
from linker.scoring.ranking import folder
from tests.indexes.cluster.conftest import Make
from tests.scoring.ranking.synthetic import documents, judged_queries

pytest.importorskip("lightgbm")


def test_a_stored_ranker_orders_and_follows_the_documents(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    building.create(tmp_path / "embedded")
    mine, theirs = make("none"), Engine(tmp_path / "embedded")
    asked, judged = judged_queries()
    texts = [query.text for query in asked[:40]]
    for engine in (mine, theirs):
        engine.add(documents())
    trained = theirs.train_ranker(asked, judged)
    ranker = folder.save(trained.ranker, trained.text, tmp_path / "model")
    for engine in (mine, theirs):
        engine.store_ranker(tmp_path / "model")
    other = Engine(mine.directory)
    local, remote = theirs.search(texts, 3), other.search(texts, 3)
    assert remote.ranker == ranker.fingerprint == local.ranker
    # BM25's last candidates may differ, and with them the features relative to other candidates.
    assert np.mean([a.ids[:1] == b.ids[:1] for a, b in zip(local.hits, remote.hits, strict=True)]) > 0.95
    assert remote.probabilities is not None
    monkeypatch.setattr(linker.engine.remote, "FOLLOW", 0.0)
    calls: list[RemoteCollection] = []
    real = RemoteCollection.again

    def again(collection: RemoteCollection) -> RemoteCollection:
        calls.append(collection)
        return real(collection)

    monkeypatch.setattr(RemoteCollection, "again", again)
    other.search(texts[0], 3)
    assert not calls  # nothing has changed
    best = remote.hits[0].ids[0]
    with writer_of(mine.directory) as writer:
        writer.remove([best])
        writer.add([Document("copy", next(d.text for d in documents() if d.id == best))], None)
        writer.commit()
    assert other.search(texts[0], 3).hits[0].ids[0] == "copy"
    assert len(calls) == 1
    monkeypatch.setattr(linker.engine.remote, "MOST", 10)
    limited = other.search(texts[0], 3)
    assert "the ranker cannot be used: it reads 10 documents at most, and there are 160" in limited.degraded
    assert not limited.ranker
