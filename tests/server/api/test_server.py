"""The real server on loopback: signals, commits by others, streams, slow clients, and the page next to the API."""

import http.client
import json
import os
import shutil
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from indexes.interface import Document
from linker.engine.engine import Engine
from linker.server.config import ServeConfig
from linker.server.running import run
from tests.helpers import linker
from tests.server.api.test_documents import IDS
from tests.server.page.chromium import Server, chromium, served, window
from tests.server.page.support import make_review

TOKEN = "t" * 32
NDJSON = {"Content-Type": "application/x-ndjson"}


def ask(server: Server, path: str, body: Any = None, method: str = "", **headers: str) -> tuple[int, Any]:
    """Return status and content of a response."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    request = urllib.request.Request(server.address + path, data, headers, method=method or None)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text, status = answer.read(), answer.status
    except urllib.error.HTTPError as e:
        text, status = e.read(), e.code
    return status, json.loads(text) if text.startswith(b"{") else text.decode()


def until(what: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def connection(server: Server) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)


def test_an_index_is_served_with_its_page_until_the_end(folder: Path) -> None:
    with served(folder / "news", 0, "--api") as server:
        assert ask(server, "/health") == (200, {"status": "alive"})
        until(lambda: ask(server, "/ready")[0] == 200)
        status, answer = ask(server, "/v1/search", {"text": "rain in valencia"})
        assert status == 200
        assert answer["results"][0]["hits"][0]["id"] == "a"
        assert "<!doctype html>" in ask(server, "/")[1]
        assert "<!doctype html>" in ask(server, "/v1")[1]  # the page's own 404
        assert ask(server, "/v1/nowhere")[1]["code"] == "not-found"
        for id_ in IDS:
            path = "/v1/documents/" + quote(id_, safe="").replace(".", "%2E")
            assert ask(server, path, {"text": "earthquake"}, "PUT")[0] == 201
            assert ask(server, path)[1]["id"] == id_
        Engine(folder / "news").add([Document("other", "tsunami")])  # by another process
        assert ask(server, "/v1/documents/other")[1]["text"] == "tsunami"
        assert ask(server, "/v1/search", {"text": "tsunami"})[1]["results"][0]["hits"][0]["id"] == "other"
        assert server.end() == 0
    lines = server.errors.splitlines()
    assert all(" info request " in line for line in lines), server.errors


def test_reviews_and_api_share_a_token_file_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    reviews = tmp_path / "reviews"
    reviews.mkdir()
    make_review(reviews)
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{'r' * 20} read\n{TOKEN}\n")
    tokens.chmod(0o600)
    with served(reviews, 0, "--api", "--token-file", str(tokens), "--log-format", "json") as server:
        _, listed = ask(server, "/v1/indexes", Authorization=f"Bearer {TOKEN}")
        assert [each["name"] for each in listed["indexes"]] == ["floods"]
        assert ask(server, "/v1/indexes")[0] == 401
        assert 'name="token"' in ask(server, "/p/floods/judge")[1]  # the page requires it, too
        cookie = f"linker-{server.port}=x"
        assert ask(server, "/v1/indexes", Cookie=cookie)[0] == 401
        server.end()
    for line in server.errors.splitlines():
        assert line.startswith("sign in") or json.loads(line)["message"] in ("request", "ready")


def test_a_signal_reads_tokens_and_indexes_again(folder: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n")
    tokens.chmod(0o600)
    with served(folder, 0, "--api", "--token-file", str(tokens)) as server:

        def names(token: str = TOKEN) -> list[str]:
            _, answer = ask(server, "/v1/indexes", Authorization=f"Bearer {token}")
            return [each["name"] for each in answer.get("indexes", [])]

        assert names() == ["news", "old"]
        shutil.copytree(folder / "news", folder / "other")
        shutil.rmtree(folder / "old")
        tokens.write_text(f"{TOKEN[:-1]}u read\n")
        os.kill(server.pid, signal.SIGHUP)
        until(lambda: names(f"{TOKEN[:-1]}u") == ["news", "other"])
        assert names() == []
        tokens.write_text("short\n")  # a mistake: the old tokens stay in force
        os.kill(server.pid, signal.SIGHUP)
        time.sleep(0.3)
        assert names(f"{TOKEN[:-1]}u") == ["news", "other"]
        server.end()
    assert "not reloaded" in server.errors
    assert "fewer than 16 characters" in server.errors


def test_that_sessions_end_with_the_process_is_said(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    def run_it() -> None:
        run(ServeConfig.of(folder / "news", token_file=tmp_path / "tokens"), "127.0.0.1", 0, api=True)

    monkeypatch.setattr("linker.server.running.serve", lambda *_, **__: None)
    run_it()
    assert capsys.readouterr().err == ""
    (tmp_path / "tokens.sessions").unlink()
    monkeypatch.setattr("linker.server.guard.access.write_secret", _refuse)
    run_it()
    assert "read-only: sessions end with this process" in capsys.readouterr().err


def _refuse(path: Path, text: str) -> None:
    raise PermissionError(13, f"{path}: {text}")


def test_requests_under_way_end_before_the_server_does(folder: Path) -> None:
    with served(folder / "news", 0, "--api") as server:
        client = connection(server)
        client.putrequest("POST", "/v1/documents:bulk")
        for name, value in {**NDJSON, "Transfer-Encoding": "chunked"}.items():
            client.putheader(name, value)
        client.endheaders()

        def chunk(data: bytes) -> None:
            client.send(b"%x\r\n%s\r\n" % (len(data), data))

        chunk(b'{"id": "s1", "text": "first"}\n{"id": "s2", ')
        until(lambda: "linker_requests_in_progress 2.0" in ask(server, "/metrics")[1])
        os.kill(server.pid, signal.SIGTERM)
        until(lambda: not _is_open(server.port))
        chunk(b'"text": "second"}')
        client.send(b"0\r\n\r\n")
        answer = client.getresponse()
        assert json.loads(answer.read())["added"] == 2
        client.close()
        assert server.end() == 0
    assert "s2" in Engine(folder / "news")


def test_at_the_end_each_connection_is_answered_until_it_is_told(folder: Path) -> None:
    """A request on a kept-alive connection is never lost: an earlier response has announced that it was the last."""
    with served(folder / "news", 0, "--api") as server:
        asking, *waiting = (connection(server) for _ in range(9))
        for client in (asking, *waiting):
            assert _is_kept(client)
            client.auto_open = 0  # a second connection would hide that the first was closed
        os.kill(server.pid, signal.SIGTERM)
        until(lambda: not _is_open(server.port))
        asking.request("GET", "/ready")
        answer = asking.getresponse()
        assert (answer.status, json.loads(answer.read())["code"]) == (503, "draining")
        while waiting:  # each is idle while the others ask
            waiting = [client for client in waiting if _is_kept(client)]
        assert server.end() == 0


def _is_kept(client: http.client.HTTPConnection) -> bool:
    client.request("GET", "/health")
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, b'{"status":"alive"}')
    return answer.headers["connection"] != "close"


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def server(indexes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of two indexes for several tests."""
    folder = Path(shutil.copytree(indexes, tmp_path_factory.mktemp("shared") / "indexes"))
    with served(folder / "news", 0, str(folder / "old"), "--api") as running:
        yield running
        running.end()
        assert "error" not in running.errors


def test_what_breaks_or_has_no_end_stops_no_other_request(server: Server) -> None:
    client = connection(server)
    client.putrequest("POST", "/v1/documents:bulk?index=news")
    for name, value in {**NDJSON, "Content-Length": "1000"}.items():
        client.putheader(name, value)
    client.endheaders()
    client.send(b'{"id": "s1", "text": "first"}\n{"id": "s2", "text": "cut')
    client.close()
    until(lambda: 'documents:bulk",status="400"' in ask(server, "/metrics")[1])
    assert ask(server, "/v1/documents/s1?index=news")[0] == 404
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.settimeout(30)
        raw.sendall(b"GET /health HTTP/1.1\r\n")
        try:
            for _ in range(200):
                raw.sendall(b"X-Bomb: " + b"x" * 8000 + b"\r\n")
            answer = raw.recv(1000)
        except OSError:
            answer = b""
    assert b"200" not in answer.partition(b"\r\n")[0]
    assert ask(server, "/health")[0] == 200
    assert len(ask(server, "/v1/indexes")[1]["indexes"]) == 2
    assert ask(server, "/")[1]["code"] == "not-found"


def test_memory_does_not_grow_with_a_stream(server: Server) -> None:
    """100 MiB in lines that are too long, so that none is indexed and only reading is measured."""
    status = Path(f"/proc/{server.pid}/status")
    if not status.exists():
        pytest.skip("there is no /proc")

    def peak() -> int:
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) << 10

    def stream() -> Any:
        for _ in range(4):
            yield from [b"x" * (1 << 20)] * 25
            yield b"\n"

    ask(server, "/v1/search", {"text": "rain", "index": "news"})
    before, client = peak(), connection(server)
    path = "/v1/documents:bulk?index=news"
    client.request("POST", path, body=stream(), headers=NDJSON, encode_chunked=True)
    report = json.loads(client.getresponse().read())
    client.close()
    assert [bad["line"] for bad in report["quarantined"]] == [1, 2, 3, 4]
    assert "more than the limit" in report["quarantined"][0]["reason"]
    assert peak() - before < 64 << 20


def test_a_log_that_nobody_reads_stops_no_answer(server: Server) -> None:
    """A pipe holds 64 KiB; each request with an id of 128 characters logs twice as many characters."""
    client = connection(server)
    for _ in range(500):
        client.request("GET", "/health", headers={"X-Request-ID": "i" * 128})
        assert client.getresponse().read() == b'{"status":"alive"}'
    client.close()


def test_mistakes_are_one_line(folder: Path, tmp_path: Path) -> None:
    assert "--api" in linker("serve", folder / "news", folder / "old", check=2).stderr
    empty = [tmp_path / "empty", tmp_path / "too"]
    for directory in empty:
        directory.mkdir()
    assert "there is no index" in linker("serve", *empty, "--api", check=1).stderr
    assert "--token-file" in linker("serve", folder, "--api", "--host", "0.0.0.0", check=1).stderr
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n")
    tokens.chmod(0o644)
    assert "chmod 600" in linker("serve", folder, "--api", "--token-file", tokens, check=1).stderr


def test_a_browser_sends_requests_from_the_documentation(indexes: Path) -> None:
    pytest.importorskip("fastapi_offline")
    faults, elsewhere = list[str](), list[str]()
    with served(indexes / "news", 0, "--api") as server, chromium() as browser:
        page = window(browser, server, "ana", faults)
        page.on(
            "request", lambda r: elsewhere.extend([r.url] * (not r.url.startswith((server.address, "data:"))))
        )
        page.goto(f"{server.address}/docs")
        route = page.locator(".opblock", has=page.locator("[data-path='/v1/search']"))
        route.locator(".opblock-summary").click()
        route.get_by_text("Try it out").click()
        route.locator("textarea").first.fill('{"text": "valencia"}')
        route.get_by_role("button", name="Execute").click()
        assert '"hits"' in route.locator(".live-responses-table").inner_text()
    assert not faults and not elsewhere
