"""Run the application until it is told to end: SIGINT and SIGTERM let requests finish."""

from __future__ import annotations

import contextlib
import errno
import signal
import socket
import sys
import threading
import webbrowser
from types import FrameType

import python_multipart  # noqa: F401 - FastAPI would say only later, and differently, that it is missing
import uvicorn
from starlette.types import ASGIApp

from indexes.interface import MissingExtraError
from linker.errors import InputError
from linker.review.learning import model
from linker.web.app import create_app
from linker.web.config import ServeConfig

GRACE = 5  # seconds for requests that are under way when the server ends


class _Server(uvicorn.Server):
    """Prints its address on stdout once it answers."""

    def __init__(self, config: uvicorn.Config, address: str, *, learner: bool, open_browser: bool) -> None:
        super().__init__(config)
        self._address, self._learner, self._open_browser = address, learner, open_browser

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(self._address, flush=True)
            if self._learner:  # else the first document would wait for it
                threading.Thread(target=_load_learner, name="load learner", daemon=True).start()
            if self._open_browser:
                webbrowser.open(self._address)


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
    listener = _listen(host, port)
    options = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, ws="none",
        proxy_headers=proxied, timeout_graceful_shutdown=grace,
    )  # fmt: skip
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}/"
    signal.signal(signal.SIGTERM, _end)  # uvicorn sends the signal again when all is closed
    with contextlib.suppress(KeyboardInterrupt):
        _Server(options, address, learner=learner, open_browser=open_browser).run(sockets=[listener])


def _load_learner() -> None:
    with contextlib.suppress(MissingExtraError):  # the page says so once it is needed
        model.load()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
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
