"""A cluster whose nodes hang: other copies and nodes are queried, and the hanging nodes are remembered."""

import contextlib
import http.server
import re
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import orjson
import pytest

from indexes.address import Address
from indexes.cluster import RemoteWriter, nodes
from indexes.cluster.asking import hits_of
from indexes.cluster.client import ElasticSettings, api_error, reason_of
from indexes.cluster.index import ClusterIndex
from indexes.interface import BackendUnavailableError
from indexes.store.records import Manifest
from tests.indexes.cluster.recorder import Recorder, recording

FOUND = orjson.dumps({"responses": [{"status": 200, "hits": {"hits": [{"sort": [1.5, 7]}]}}]})


class Copies(http.server.BaseHTTPRequestHandler):
    """A node that sends searches with a preference to a copy that never responds."""

    headers_of: ClassVar[list[dict[str, object]]]
    released: ClassVar[threading.Event]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        header = orjson.loads(body.splitlines()[0])
        self.headers_of.append(header)
        if "preference" in header:
            self.released.wait(60)
            return
        self.answer(FOUND)

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.elasticsearch+json;compatible-with=8")
        self.send_header("X-Elastic-Product", "Elasticsearch")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def sorted_by(answers: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    return [[hit["sort"] for hit in hits_of(answer)] for answer in answers]


@contextlib.contextmanager
def copies(count: int, kind: type[Copies] = Copies) -> Iterator[tuple[list[str], type[Copies]]]:
    """Give the addresses of nodes, and the requests they received."""
    released = threading.Event()
    handler = type("Handler", (kind,), {"headers_of": [], "released": released})
    with contextlib.ExitStack() as stack:
        urls = []
        for _ in range(count):
            server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            urls.append(f"http://127.0.0.1:{server.server_port}")
        stack.callback(released.set)
        yield urls, handler


def test_a_search_whose_copy_hangs_is_answered_by_another() -> None:
    with copies(2) as (urls, asked):
        store = ClusterIndex(ElasticSettings(tuple(urls), "any", replicas=1), timeout=1)
        for _ in range(2):
            assert sorted_by(store.msearch([{}])) == [[[1.5, 7]]]
        assert ["preference" in header for header in asked.headers_of] == [True, False, False]
        store.close()


class Slow(Copies):
    """A node too slow for more than two searches at once; it answers pings, or hangs."""

    hangs: ClassVar[bool]

    def do_POST(self) -> None:
        lines = self.rfile.read(int(self.headers["Content-Length"])).splitlines()
        searches = len(lines) // 2 if self.path.startswith("/any/_msearch") else 0
        self.headers_of.append({"searches": searches})
        if searches > 2 or (self.hangs and not searches):
            self.released.wait(60)
            return
        found = {
            "responses": [{"status": 200, "hits": {"hits": [{"sort": [1.5, n]}]}} for n in range(searches)]
        }
        self.answer(orjson.dumps(found if searches else {}))


@pytest.mark.parametrize("server_hangs", [False, True])
def test_the_time_limit_is_that_of_a_search_not_of_many_together(server_hangs: bool) -> None:
    with copies(1, type("Handler", (Slow,), {"hangs": server_hangs})) as (urls, asked):
        store = ClusterIndex(ElasticSettings(tuple(urls), "any"), timeout=0.5)
        if server_hangs:
            with pytest.raises(BackendUnavailableError, match="does not answer"):
                store.msearch([{}] * 5)
        else:
            assert sorted_by(store.msearch([{}] * 5)) == [[[1.5, n]] for n in (0, 1, 0, 0, 1)]
            assert sorted_by(store.msearch([{}] * 5)) == [[[1.5, n]] for n in (0, 1, 0, 0, 1)]
        store.close()
        tried = [header["searches"] for header in asked.headers_of if header["searches"]]
        if server_hangs:
            assert set(tried) == {5}
        else:
            assert tried[-6:] == [2, 1, 2] * 2  # the second time, no request is too large


def test_without_replicas_the_copy_is_the_only_one() -> None:
    with copies(1) as (urls, asked):
        store = ClusterIndex(ElasticSettings(tuple(urls), "any"), timeout=0.5)
        with pytest.raises(
            BackendUnavailableError, match=r"does not answer .* or set LINKER_ELASTIC_TIMEOUT"
        ):
            store.msearch([{}])
        assert all("preference" in header for header in asked.headers_of)
        store.close()


def test_a_node_that_hangs_is_waited_for_by_one_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nodes, "_away", {})
    with recording() as (url, _), socket.create_server(("127.0.0.1", 0)) as hanging:
        connections: list[object] = []

        def accept() -> None:
            while True:
                connections.append(hanging.accept())

        threading.Thread(target=accept, daemon=True).start()
        settings = ElasticSettings((f"http://127.0.0.1:{hanging.getsockname()[1]}", url), "any", replicas=1)
        for _ in range(6):
            store = ClusterIndex(settings, timeout=1)
            for _ in range(2):  # each client may begin with either node
                assert store.count() == 3
            store.close()
        assert len(connections) == 1


def test_reasons_and_remedies_are_named() -> None:
    settings = ElasticSettings(("http://127.0.0.1:9",), "any")
    full = "cluster_block_exception: index [x] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage …]"
    for status, reason, remedy in (
        (429, full, "free space"), (403, "security_exception: no", "LINKER_ELASTIC_API_KEY"),
        (503, "master_not_discovered_exception: None", "cut off"), (503, "else", "_cluster/health"),
    ):  # fmt: skip
        assert remedy in str(api_error(settings, status, reason))
    assert re.search("free space|rejected", str(api_error(settings, 403, full)))
    assert reason_of({"_shards": {"total": 3, "successful": 0, "failed": 0}}) == "0 of 3 shards answered"
    failure = {"reason": {"type": "t", "reason": "r"}}
    assert reason_of({"_shards": {"total": 3, "successful": 0, "failed": 1, "failures": [failure]}}) == "t: r"


def test_writers_wait_for_a_busy_server_and_a_change_not_for_one_that_is_away(
    recorder: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, server = recorder
    address = Address((url,), "news")

    def come_back(_: float) -> None:
        server.status, server.body = 200, b'{"docs": [{"found": false}]}'

    monkeypatch.setattr("indexes.cluster.writer.time.sleep", come_back)
    with contextlib.closing(ClusterIndex(ElasticSettings.of(address))) as index:
        for stamp in (0, 1):
            server.status, server.body = 503, b"{}"
            assert RemoteWriter(address, index, Manifest(), stamp).present(["a"]) == set()
    away = Address(("http://127.0.0.1:9",), "news")
    with contextlib.closing(ClusterIndex(ElasticSettings.of(away))) as index:
        monkeypatch.setattr("indexes.cluster.writer.time.sleep", pytest.fail)
        with pytest.raises(BackendUnavailableError):
            RemoteWriter(away, index, Manifest()).present(["a"])
