"""Connections without a complete request are closed; others live as long as before."""

import asyncio
import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.types import Message, Receive, Scope, Send

from linker.server.guard import protocol
from linker.server.guard.admission import Bounds, RefusedError, bounded


async def _hello(scope: Scope, receive: Receive, send: Send) -> None:
    """Greet once the body has arrived; clients of /known count as signed in and have unlimited time."""
    assert scope["type"] == "http"
    scope["state"]["known"] = known = scope["path"] == "/known"
    try:
        received = bounded(scope, receive, Bounds(100) if known else Bounds(100, 0.4, 0.3))
        while (await received()).get("more_body"):
            pass
        status = 200
    except RefusedError as e:
        status = e.status_code
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@contextlib.contextmanager
def running() -> Iterator[tuple[uvicorn.Server, int]]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(
            _hello,
            http=protocol.PatientProtocol,
            lifespan="off",
            log_level="error",
            ws="none",
            proxy_headers=False,
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield server, listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def test_a_body_that_drips_has_a_deadline() -> None:
    """Each piece arrives well within the limit between pieces, but the whole body after its deadline."""
    pieces = iter(range(20))

    async def receive() -> Message:
        await asyncio.sleep(0.05)
        return {"type": "http.request", "body": b".", "more_body": next(pieces) < 19}

    async def read() -> None:
        received = bounded({"type": "http", "headers": []}, receive, Bounds(100, seconds=0.3, idle=30))
        while (await received())["more_body"]:
            pass

    with pytest.raises(RefusedError) as refused:
        asyncio.run(read())
    assert refused.value.status_code == 408


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(protocol, "SECONDS", 0.2)
    with running() as (_, number):
        yield number


def received(raw: socket.socket) -> bytes:
    """Return all data received until the connection is closed."""
    raw.settimeout(30)
    text = b""
    with contextlib.suppress(ConnectionResetError):
        while part := raw.recv(1000):
            text += part
    return text


@pytest.mark.parametrize("start", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT"])
def test_what_is_no_whole_request_is_closed(port: int, start: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(start)
        text = received(raw)
    assert text.endswith(b"hello") == start.endswith(b"HT")


def test_whole_requests_go_on(port: int) -> None:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for _ in range(3):
        client.request("GET", "/")
        assert client.getresponse().read() == b"hello"
        time.sleep(0.05)
    client.close()


HALF = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf"
WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("pieces", [1, 20])
def test_a_body_has_an_end(port: int, pieces: int) -> None:
    """Even one that arrives byte by byte, each in time."""
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(pieces):
                raw.sendall(b"x")
                time.sleep(0.1 if pieces > 1 else 0)
        assert b" 408 " in received(raw)


def test_more_than_may_be_held_close_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connections of one address do not shut anyone out, nor end those of signed-in users."""
    monkeypatch.setattr(protocol, "MOST_OF_ONE", 6)
    with running() as (server, port), contextlib.ExitStack() as stack:

        def connect(sent: bytes) -> socket.socket:
            raw = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            raw.sendall(sent)
            return raw

        known = connect(HALF % b"/known")
        for number in range(30):
            connect((b"GET / HT", HALF % b"/")[number % 2])
            assert received(connect(WHOLE)).endswith(b"hello")
            assert len(server.server_state.connections) < 6 + 10  # plus those just being closed
        known.sendall(b"whole!")
        known.shutdown(socket.SHUT_WR)
        assert b" 200 " in received(known)


def test_where_all_are_being_answered_the_new_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MOST", 2)
    with running() as (server, port), contextlib.ExitStack() as stack:
        for number in (1, 2):
            raw = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            raw.sendall(HALF % b"/known")
            while _known(server) < number:
                time.sleep(0.01)
        with socket.create_connection(("127.0.0.1", port)) as late:
            text = received(late)
        assert b" 503 " in text
        assert b"retry-after" in text


def _known(server: uvicorn.Server) -> int:
    """Return how many requests of signed-in users are in progress."""
    cycles = [
        c.cycle for c in list(server.server_state.connections) if isinstance(c, protocol.PatientProtocol)
    ]
    return sum(bool(cycle and cycle.scope["state"].get("known")) for cycle in cycles)


def test_at_the_end_a_connection_that_is_kept_alive_is_answered_once_more() -> None:
    with running() as (server, port):
        clients = [http.client.HTTPConnection("127.0.0.1", port, timeout=30) for _ in range(3)]
        for client in clients:
            client.request("GET", "/")
            assert client.getresponse().read() == b"hello"
        server.should_exit = True
        time.sleep(0.3)  # it checks every 0.1 s
        for client in clients[:2]:
            client.request("GET", "/")
            answer = client.getresponse()
            assert answer.read() == b"hello"
            assert answer.headers["connection"] == "close"
        assert clients[2].sock.recv(10) == b""  # no request was sent, so it is closed
        for client in clients:
            client.close()
