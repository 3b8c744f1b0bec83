"""Run the API, with the page where one directory is served that has one."""

from __future__ import annotations

import dataclasses
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from prometheus_client.multiprocess import mark_process_dead
from starlette.types import ASGIApp

from indexes.cores import cores
from indexes.errors import IndexesError
from indexes.sharded import is_index
from linker.base.errors import LinkerError
from linker.base.printable import on_one_line
from linker.review.project import Workspace
from linker.server.api import logs
from linker.server.api.app.making import Joined, service_app
from linker.server.api.config import ServiceConfig
from linker.server.api.workers import Workers
from linker.server.page.access import Access
from linker.server.page.app import create_app
from linker.server.page.config import ServeConfig
from linker.server.page.server import address_of, listen, serve, serve_on

GRACE = 30  # seconds for requests that are under way when the server ends


def run(config: ServiceConfig, host: str, port: int, *, open_browser: bool = False, workers: int = 1) -> None:
    """Serve until a signal; several worker processes serve the API alone, since the page lives in one.

    Raises InputError or IndexesError where an index or the port cannot be used.
    """
    logs.configure(config.log_format)
    if workers > 1:
        with tempfile.TemporaryDirectory(prefix="linker-jobs-") as folder:
            sys.exit(_by_workers(dataclasses.replace(config, jobs_folder=Path(folder)), host, port, workers))
    page = _page(config)
    if page and page.access.tokens and not page.access.survives:
        logs.event("the token file's folder is read-only: sessions end with this process", logging.WARNING)
    serve(
        application(config, page), host, port, proxied=bool(config.proxy_header), learner=page is not None,
        open_browser=open_browser, grace=GRACE,
    )  # fmt: skip


def _by_workers(config: ServiceConfig, host: str, port: int, count: int) -> int:
    config.indexes()  # a mistake is told once, not by each worker
    listener = listen(host, port)
    # Libraries that are loaded in the workers ask this: the workers share the threads that one process would have.
    threads, _, _ = os.environ.get("OMP_NUM_THREADS", str(cores())).partition(",")
    os.environ["OMP_NUM_THREADS"] = str(max(1, int(threads) // count))

    def work(is_ready: Callable[[], None]) -> None:
        try:
            app = service_app(config)
            app.state.service.load_encoders()  # meanwhile the other workers answer
            app.state.service.refresh()
        except (LinkerError, IndexesError) as e:
            sys.exit(f"error: {on_one_line(str(e))}")
        serve_on(listener, app, is_ready, proxied=bool(config.proxy_header), grace=GRACE)

    def ended(pid: int) -> None:
        logs.event("a worker has ended and is replaced", logging.WARNING, pid=pid)
        mark_process_dead(pid)  # type: ignore[no-untyped-call]  # it has no types

    address = address_of(host, listener)
    workers = Workers(count, work, grace=GRACE, ready=lambda: print(address, flush=True), ended=ended)
    return workers.run()


def application(config: ServiceConfig, page: ServeConfig | None) -> ASGIApp:
    """Return the API, beside the page of a folder if there is one. Raises InputError or IndexesError."""
    api = service_app(config, page.access if page else None)
    return Joined(api, create_app(page)) if page else api


def _page(config: ServiceConfig) -> ServeConfig | None:
    """Return how the page is served: where one directory is given, which is not a mere folder of indexes."""
    if len(config.directories) > 1:
        return None
    (directory,) = config.directories
    workspace = Workspace(directory)
    if not is_index(directory) and any(p.folder is None for p in workspace.projects):
        return None
    access, hosts = Access.of(config.token_file, page=True), config.hosts
    return ServeConfig(directory, hosts.names, access, config.proxy_header, hosts.any_address)
