"""Connections on which no whole request comes are closed; others live as long as before."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from linker.web import protocol


async def _hello(scope: Scope, receive: Receive, send: Send) -> None:
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(protocol, "SECONDS", 0.2)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(_hello, http=protocol.PatientProtocol, lifespan="off", log_level="error", ws="none")
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.mark.parametrize("start", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT"])
def test_what_is_no_whole_request_is_closed(port: int, start: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.settimeout(30)
        raw.sendall(start)
        received = b""
        while part := raw.recv(1000):
            received += part
    assert received.endswith(b"hello") == start.endswith(b"HT")


def test_whole_requests_go_on(port: int) -> None:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for _ in range(3):
        client.request("GET", "/")
        assert client.getresponse().read() == b"hello"
        time.sleep(0.05)
    client.close()
