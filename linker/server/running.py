"""Run the application until it is told to end: SIGINT and SIGTERM let requests finish."""

from __future__ import annotations

import contextlib
import errno
import gc
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from types import FrameType

import python_multipart  # noqa: F401 - FastAPI would say only later, and differently, that it is missing
import uvicorn
from starlette.types import ASGIApp

from indexes.interface import MissingExtraError
from linker.base.errors import InputError
from linker.review.learning import model
from linker.server.page.app import create_app
from linker.server.page.config import ServeConfig
from linker.server.page.protocol import PatientProtocol, allow_descriptors

BACKLOG = 1024  # connections that wait to be accepted
GRACE = 5  # seconds for requests that are under way when the server ends
SWITCH = 0.0005  # seconds after which a thread gives way to another, which may be the one that all requests wait for


class _Server(uvicorn.Server):
    """Calls `then` once it answers."""

    def __init__(self, config: uvicorn.Config, then: Callable[[], None]) -> None:
        super().__init__(config)
        self._then = then

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            gc.collect()
            gc.freeze()  # the libraries' objects need not be looked through each time that a request has made many
            self._then()


def run(config: ServeConfig, host: str, port: int, *, open_browser: bool = False) -> None:
    """Serve until a signal. Raises InputError where the folder or the port cannot be used."""
    serve(create_app(config), host, port, proxied=bool(config.proxy_header), open_browser=open_browser)


def serve(
    app: ASGIApp,
    host: str,
    port: int,
    *,
    proxied: bool = False,
    learner: bool = True,
    open_browser: bool = False,
    grace: int = GRACE,
) -> None:
    """Serve an application until a signal, and then give requests under way `grace` seconds.

    `proxied`: believe a proxy on this machine about addresses. `learner`: load what the page learns with. Raises
    InputError where the port cannot be used.
    """
    listener = listen(host, port)
    address = address_of(host, listener)

    def announce() -> None:
        print(address, flush=True)
        if learner:  # else the first document would wait for it
            threading.Thread(target=_load_learner, name="load learner", daemon=True).start()
        if open_browser:
            webbrowser.open(address)

    serve_on(listener, app, announce, proxied=proxied, grace=grace)


def serve_on(
    listener: socket.socket,
    app: ASGIApp,
    then: Callable[[], None],
    *,
    proxied: bool = False,
    grace: int = GRACE,
) -> None:
    """Serve an application on a listening socket until a signal, as `serve` does; call `then` once it answers."""
    options = uvicorn.Config(
        app, http=PatientProtocol, log_level="warning", access_log=False, server_header=False, ws="none",
        proxy_headers=proxied, timeout_graceful_shutdown=grace,
    )  # fmt: skip
    allow_descriptors()
    sys.setswitchinterval(SWITCH)
    signal.signal(signal.SIGTERM, _end)  # uvicorn sends the signal again when all is closed
    with contextlib.suppress(KeyboardInterrupt):
        _Server(options, then).run(sockets=[listener])


def address_of(host: str, listener: socket.socket) -> str:
    """Return the address of a server that listens on `host`."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}/"


def _load_learner() -> None:
    with contextlib.suppress(MissingExtraError):  # the page says so once it is needed
        model.load()


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises InputError where the port cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends at once (TCP_NODELAY); else an answer waits 40 ms for the client's ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as e:
        listener.close()
        remedy = (
            "give another --port, or 0 for any that is free"
            if e.errno == errno.EADDRINUSE
            else "check --host"
        )
        raise InputError(f"cannot listen on {host}:{port}: {e.strerror}: {remedy}") from e
    return listener


def _end(signal_number: int, frame: FrameType | None) -> None:
    sys.exit(0)
