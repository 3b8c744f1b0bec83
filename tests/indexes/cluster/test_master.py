"""Three nodes on loopback: the master dies while one thread builds and others search, and nobody notices."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from indexes.cluster.beside import ServerText
from indexes.cluster.bulk import BulkSettings
from indexes.cluster.client import ElasticSettings
from indexes.cluster.index import ClusterIndex, new_name
from indexes.cluster.retrievers import ClusterVectors
from indexes.cluster.rows import ByRow
from indexes.interface import Document, Hits
from indexes.rows import Rows
from indexes.store.records import EncoderRecord, Manifest
from indexes.text.parameters import AnalysisSettings
from tests import elastic_server
from tests.elastic_server import Node

pytestmark = pytest.mark.slow

COUNT, DIM, GROWING = 3000, 8, 12_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[Node]]:
    elastic_server.require(nodes=3)
    with elastic_server.folder() as folder:
        names = [f"node{i}" for i in range(3)]
        ports = elastic_server.free_ports(6)
        common = {
            "cluster.name": folder.name, "discovery.seed_hosts": [f"127.0.0.1:{port}" for port in ports[3:]],
            "cluster.initial_master_nodes": names, "cluster.fault_detection.follower_check.timeout": "5s",
        }  # fmt: skip
        nodes = [
            Node(folder / name, port, {**common, "transport.port": transport})
            for name, port, transport in zip(names, ports[:3], ports[3:], strict=True)
        ]
        try:
            for node in nodes:
                node.start(wait=False)
            for node in nodes:
                node.wait("green", 600)
            assert nodes[0].get("/_cluster/health")["number_of_nodes"] == 3
            yield nodes
        finally:
            for node in nodes:
                node.stop()


def master(nodes: list[Node]) -> Node:
    names = nodes[0].get("/_cat/master?format=json")
    return next(n for n in nodes if n.folder.name == names[0]["node"])


def test_the_death_of_the_master_is_survived_while_building_and_searching(cluster: list[Node]) -> None:
    settings = ElasticSettings(tuple(n.url for n in cluster), new_name("cluster"), shards=3, replicas=1)
    bulk = BulkSettings(3, patience=300)

    finished, probe = ClusterIndex(settings, timeout=90), new_name("growing")
    finished.create(DIM, "flat")
    analysis, rows = AnalysisSettings("none"), Rows()
    encoder = EncoderRecord("elsewhere", "", DIM)
    text = ServerText(Manifest("elastic-flat", analysis=analysis, encoder=encoder), rows, finished)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((COUNT, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = [Document(f"d{i}", f"common kind{i % 7} word{i}") for i in range(COUNT)]
    text.add_documents(texts, vectors)
    text.commit()
    dense = ClusterVectors(finished, ByRow(rows), DIM, "flat")
    queries = ["kind3", "word42", "common word5"]

    def ask() -> list[Hits]:
        return text.search(queries, 20) + rows.hits(*dense.search_rows(vectors[:2], 20))

    expected = [h.ids for h in ask()]
    growing = ClusterIndex(ElasticSettings(settings.urls, probe, 3, 1), timeout=90, bulk=bulk)
    growing.create()
    built = ServerText(Manifest(analysis=analysis), Rows(), growing)
    ended, begun = threading.Event(), threading.Event()
    searches = [0]

    def build() -> None:
        for start in range(0, GROWING, 200):
            built.add(
                [f"g{i}" for i in range(start, start + 200)],
                [f"grown word{i}" for i in range(start, start + 200)],
            )
            if start == 2000:
                begun.set()
        built.commit()

    def search() -> None:
        while not ended.is_set():
            assert [h.ids for h in ask()] == expected  # no failure, nothing missing
            searches[0] += 1
            time.sleep(0.05)  # leave time to build for the nodes, which share the test's cores

    with ThreadPoolExecutor(3) as pool:
        building, *searching = pool.submit(build), pool.submit(search), pool.submit(search)
        assert begun.wait(300)
        victim = master(cluster)
        victim.kill()
        at_death = searches[0]
        building.result(600)
        end = time.monotonic() + 60
        while searches[0] < at_death + 5 and time.monotonic() < end:
            time.sleep(0.1)
        ended.set()
        for thread in searching:
            thread.result(200)
    assert searches[0] >= at_death + 5
    assert growing.count() == GROWING
    stored = growing.fetch(range(GROWING))
    assert [stored[row]["id"] for row in range(GROWING)] == [f"g{i}" for i in range(GROWING)]
    assert master([n for n in cluster if n is not victim]) is not victim
    assert [h.ids for h in ask()] == expected
    for store in (finished, growing):
        store.drop()
        store.close()
