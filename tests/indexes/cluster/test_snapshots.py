"""A snapshot of the indexes `NAME-*` contains an index on a cluster, as docs/elasticsearch.md says."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import orjson
import pytest

from indexes.address import Address
from indexes.cluster import check, drop
from indexes.cluster.index import new_name
from linker.engine.engine import Engine
from tests.helpers import linker, write_corpus


def call(server: str, method: str, path: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(
        server + path, orjson.dumps(body), {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def test_a_restored_snapshot_is_the_index(elastic: str, tmp_path: Path) -> None:
    name = new_name("snapshot")
    address = f"elastic+{elastic}/{name}"
    named = Address.of(address)
    assert named
    linker("index", "build", write_corpus(tmp_path / "c.jsonl", 60), "--out", address)
    linker("index", "delete", address, "d3")

    def found() -> tuple[list[str], list[float]]:
        with Engine.open(address) as engine:
            (hits,) = engine.search("banel", 20).hits
            assert len(engine) == 59
            return list(hits.ids), hits.scores.tolist()

    before = found()
    assert before[0]
    repository = {"type": "fs", "settings": {"location": name}}
    indexes = {"indices": f"{name}-*", "include_global_state": False}
    call(elastic, "PUT", f"/_snapshot/{name}", repository)
    call(elastic, "PUT", f"/_snapshot/{name}/monday?wait_for_completion=true", indexes)
    drop(named)
    call(elastic, "POST", f"/_snapshot/{name}/monday/_restore?wait_for_completion=true", indexes)
    assert found() == before
    assert check(named).damage == []
    linker("index", "add", address, write_corpus(tmp_path / "more.jsonl", 5, seed=1, prefix="m"))
    assert check(named).documents == 64
    drop(named)


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (("backup", "copy.tar"), "take a snapshot"),
        (("checkout", "1"), "restore a snapshot"),
    ],
)
def test_what_a_cluster_does_instead_is_said(command: tuple[str, ...], remedy: str) -> None:
    done = linker("index", command[0], "elastic+http://127.0.0.1:1/stories", *command[1:], check=1)
    assert "is an index on Elasticsearch, which does not support" in done.stderr
    assert remedy in done.stderr
