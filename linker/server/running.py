"""Run the page, the API or both until SIGINT or SIGTERM; requests in progress may finish."""

import contextlib
import dataclasses
import errno
import gc
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import python_multipart  # noqa: F401 - if it is missing, FastAPI would report that only later, and differently
import uvicorn
from starlette.types import ASGIApp

from indexes.cores import cores
from indexes.errors import IndexesError, MissingExtraError
from linker.base.errors import InputError, LinkerError
from linker.base.printable import on_one_line
from linker.review.learning import model
from linker.server.api import logs
from linker.server.api.workers import Workers, shared_metrics
from linker.server.config import ServeConfig, has_page
from linker.server.guard.protocol import PatientProtocol, allow_descriptors
from linker.server.page.app import create_app
from linker.server.shelf import Shelf

BACKLOG = 1024  # connections that wait to be accepted
GRACE, API_GRACE = 5, 30  # seconds that requests in progress may take when the server ends
# seconds after which a thread yields to another, which may be the one that serves all requests
SWITCH = 0.0005


class _Server(uvicorn.Server):
    """A server that calls `then` once it answers; on a signal, `/ready` reports that the application is draining."""

    def __init__(self, config: uvicorn.Config, then: Callable[[], None], drain: Callable[[], None]) -> None:
        super().__init__(config)
        self._then, self._drain = then, drain

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._drain()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            gc.collect()
            gc.freeze()  # keep the garbage collector from scanning the libraries' objects
            self._then()


def run(
    config: ServeConfig,
    host: str,
    port: int,
    *,
    api: bool = False,
    open_browser: bool = False,
    workers: int = 1,
) -> None:
    """Serve until a signal; several worker processes serve only the API, since the page needs a single process.

    Raises InputError or IndexesError if an index or the folder cannot be opened, or the port is unavailable.
    """
    if workers > 1:
        with tempfile.TemporaryDirectory(prefix="linker-jobs-") as folder, shared_metrics():
            sys.exit(_by_workers(dataclasses.replace(config, jobs_folder=Path(folder)), host, port, workers))
    is_shown = not api or has_page(config.directories)
    if api:
        logs.configure(config.log_format)
        if is_shown and config.access.tokens and not config.access.survives:
            logs.event(
                "the token file's folder is read-only: sessions end with this process", logging.WARNING
            )
    serve(
        application(config) if api else create_app(config), host, port, proxied=bool(config.proxy_header),
        learner=is_shown, open_browser=open_browser, grace=API_GRACE if api else GRACE,
    )  # fmt: skip


def application(config: ServeConfig) -> ASGIApp:
    """Return the API, next to the page of a folder if there is one. Raises InputError or IndexesError."""
    from linker.server.api.app import Joined, service_app

    shelf = Shelf()
    api = service_app(config, shelf)
    return Joined(api, create_app(config, shelf)) if has_page(config.directories) else api


def _by_workers(config: ServeConfig, host: str, port: int, count: int) -> int:
    from prometheus_client.multiprocess import mark_process_dead

    from linker.server.api.app import service_app

    logs.configure(config.log_format)
    config.indexes()  # checked here, so that a mistake is reported once and not by each worker
    listener = listen(host, port)
    # Libraries in the workers read this: the workers share the thread count of a single process.
    threads, _, _ = os.environ.get("OMP_NUM_THREADS", str(cores())).partition(",")
    os.environ["OMP_NUM_THREADS"] = str(max(1, int(threads) // count))

    def work(is_ready: Callable[[], None]) -> None:
        try:
            app = service_app(config)
            app.state.service.load_encoders()  # meanwhile, the other workers answer
            app.state.service.refresh()
        except (LinkerError, IndexesError) as e:
            sys.exit(f"error: {on_one_line(str(e))}")
        serve_on(listener, app, is_ready, proxied=bool(config.proxy_header), grace=API_GRACE)

    def ended(pid: int) -> None:
        logs.event("a worker has ended and is replaced", logging.WARNING, pid=pid)
        mark_process_dead(pid)  # type: ignore[no-untyped-call]  # it has no types

    address = address_of(host, listener)
    workers = Workers(count, work, grace=API_GRACE, ready=lambda: print(address, flush=True), ended=ended)
    return workers.run()


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
    """Serve an application until a signal, and then give requests in progress `grace` seconds.

    `proxied`: trust addresses from a proxy on this machine. `learner`: preload the learning libraries. Raises
    InputError if the port is unavailable.
    """
    listener = listen(host, port)
    address = address_of(host, listener)

    def announce() -> None:
        print(address, flush=True)
        if learner:  # otherwise the first document would have to wait
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
    signal.signal(signal.SIGTERM, _end)  # uvicorn sends the signal again after shutdown
    with contextlib.suppress(KeyboardInterrupt):
        _Server(options, then, getattr(app, "drain", lambda: None)).run(sockets=[listener])


def address_of(host: str, listener: socket.socket) -> str:
    """Return the address of a server that listens on `host`."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}/"


def _load_learner() -> None:
    with contextlib.suppress(MissingExtraError):  # the page reports the missing extra when it is needed
        model.load()


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises InputError if the port is unavailable."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With an explicit protocol, asyncio sets TCP_NODELAY; otherwise answers wait 40 ms for the client's ACK.
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
