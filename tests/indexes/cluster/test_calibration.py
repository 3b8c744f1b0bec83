"""P(link) on a cluster: computed from the servers' results, stored there, and seen by every engine."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import linker.engine.sharding
from indexes.address import Address
from indexes.cluster import drop, manifest_of
from indexes.cluster import files as remote_files
from indexes.cluster.bulk import Operation
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import FILES, ClusterIndex, new_name
from indexes.interface import DamagedError, Document
from indexes.store.records import EncoderRecord, Manifest
from indexes.writer import Writer
from linker import Question, find
from linker.base.errors import InputError
from linker.engine import Engine, building
from linker.scoring.probability import folder
from linker.scoring.probability.features import DEPTH, Describer
from tests.helpers import HashEncoder, write_json_lines
from tests.helpers import linker as run
from tests.indexes.cluster.conftest import Make
from tests.scoring.ranking.synthetic import documents, judged_queries

FEW = 90  # queries, just enough for some to be held out


def embedded(directory: Path) -> Engine:
    encoder, texts = HashEncoder(), documents()
    record = EncoderRecord("hash", encoder.fingerprint, encoder.dim)
    with Writer.create(directory, Manifest("flat", encoder=record)) as writer:
        writer.add(texts, encoder.encode([d.text for d in texts]))
        writer.commit()
    return Engine(directory, encoder=encoder)


def test_hits_are_described_as_in_a_directory(make: Make, tmp_path: Path) -> None:
    mine, theirs = make(), embedded(tmp_path / "embedded")
    mine.add(documents())
    texts = [query.text for query in judged_queries()[0][:20]]
    lines = [[f"d{(7 * n + m) % 160}" for m in range(5 + n % 2)] for n in range(len(texts))]
    features = []
    for engine in (mine, theirs):
        ranking = engine.collection.ranking()
        rows = np.full((len(lines), 6), -1)
        for number, line in enumerate(lines):
            rows[number, : len(line)] = ranking.rows.locate(line)
        describer = Describer(engine.collection, engine.embed)
        features.append(describer.describe(texts, rows, None, ranking))
    np.testing.assert_allclose(features[0], features[1], rtol=1e-4, atol=1e-5)
    assert "_ids" not in vars(mine.collection.documents)  # not all documents were read
    assert len(mine) > DEPTH  # some of the documents are beyond the rankings


@pytest.mark.parametrize("server", ["opensearch"], indirect=True)
def test_a_stored_calibration_is_followed(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, other = make(), None
    engine.add(documents())
    other = Engine(engine.directory, encoder=HashEncoder())
    queries, judged = judged_queries()
    queries = queries[:FEW]
    texts = [query.text for query in queries]
    assert engine.calibration is None and engine.search(texts[:2], 3).probabilities is None
    with pytest.raises(InputError, match=r"opensearch\+http://.* has no calibration"):
        engine.probabilities(texts[:1], engine.search(texts[:1], 3))
    with monkeypatch.context() as patch:
        patch.setattr(remote_files, "PIECE", 1000)  # so that there are several pieces
        fitted = folder.save(engine.calibrate(queries, judged), tmp_path / "calibration")
        engine.store_calibration(tmp_path / "calibration")
        answer = engine.search(texts, 3)
        assert answer.probabilities is not None and answer.calibration == fitted.fingerprint
        right = [h.ids[0] in judged[q.id] for q, h in zip(queries, answer.hits, strict=True)]
        assert abs(np.mean([p[0] for p in answer.probabilities]) - np.mean(right)) < 0.1
        monkeypatch.setattr(linker.engine.sharding, "FOLLOW", 0.0)
        later = other.search(texts, 3)
        assert later.calibration == fitted.fingerprint
        assert later.probabilities is not None
        np.testing.assert_allclose(np.concatenate(later.probabilities), np.concatenate(answer.probabilities))
        with engine._writer() as writer:
            writer.add([Document("new", documents()[0].text)], HashEncoder().encode([documents()[0].text]))
            writer.commit()
        late = other.search(texts[:1], 3, where=None)
        assert "new" in late.hits[0].ids
        assert late.probabilities is not None and np.isfinite(late.probabilities[0]).all()
    assert "calibration" in manifest_of(engine.directory).search


def test_commands_use_what_is_stored(make: Make, tmp_path: Path) -> None:
    engine = make("none")
    engine.add(documents())
    queries, judged = judged_queries()
    queries = queries[:FEW]
    write_json_lines(tmp_path / "queries.jsonl", ({"_id": q.id, "text": q.text} for q in queries))
    lines = [f"{q} 0 {d} 1\n" for q, docs in judged.items() for d in docs]
    (tmp_path / "qrels").write_text("".join(lines))
    where = str(Address.of(engine.directory))
    options = ("--queries", tmp_path / "queries.jsonl", "--qrels", tmp_path / "qrels")
    report = json.loads(run("calibrate", where, *options, "--json").stdout)
    hits = json.loads(run("search", where, "--text", queries[0].text, "--json").stdout)
    assert hits["calibration"] == report["calibration"]
    assert all(0 <= hit["probability"] <= 1 for hit in hits["hits"])

    def judge(question: Question) -> Any:
        return "relevant" if question.document.id in judged[question.seed.id] else "not"

    seeds = {query.id: query.text for query in queries[:4]}
    report = find(Engine(Path(where)), seeds, judge, max_read=8)
    assert report.read == 8
    address = Address.of(where)
    assert address
    drop(address)
    store = ClusterIndex(ElasticSettings.of(address))
    assert not store.client.indices.exists(index=f"{address.name}{FILES}")
    store.close()


def test_a_calibration_that_is_damaged_or_lost_is_named(make: Make, tmp_path: Path) -> None:
    engine = make("none")
    engine.add(documents())
    queries, judged = judged_queries()
    folder.save(engine.calibrate(queries[:FEW], judged), tmp_path / "calibration")
    engine.store_calibration(tmp_path / "calibration")
    path = str(engine.collection.manifest.search["calibration"])
    store = engine.collection.index  # type: ignore[attr-defined]
    for source in (b'{"data": "YQ=="}', b'{"data": 1}', b"{}"):
        key = orjson.dumps({"index": {"_id": f"{path}/calibration.json#0"}})
        remote_files.write(store, FILES, [Operation(key, source)])
        with pytest.raises(DamagedError, match="has changed since it was stored: store it again"):
            _ = Engine(engine.directory).calibration
    store.client.indices.delete(index=f"{store.settings.index}{FILES}")
    with pytest.raises(DamagedError, match="has changed since it was stored"):
        _ = Engine(engine.directory).calibration
    engine.store_calibration(tmp_path / "calibration")
    assert Engine(engine.directory).calibration is not None


def test_p_comes_from_the_servers_scores(
    elastic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKER_ELASTIC_TIMEOUT", "60")
    settings = ElasticSettings((elastic,), new_name("calibrated"))
    asked, judged = judged_queries()
    try:
        building.create(tmp_path / "index", elastic=settings)
        engine = Engine(tmp_path / "index")
        engine.add(documents())
        asked = asked[:FEW]
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
