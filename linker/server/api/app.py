"""The application of the API: one router per resource behind one guard."""

import asyncio
import contextlib
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.types import ASGIApp, Receive, Scope, Send

from indexes.errors import IndexesError
from linker.base.errors import LinkerError
from linker.base.printable import on_one_line
from linker.base.version import __version__
from linker.server.api import logs
from linker.server.api.evaluating import EvaluateRequest
from linker.server.api.guard import OPEN, policy_factory, register
from linker.server.api.routes import (
    docs,
    documents,
    embeddings,
    evaluate,
    indexes,
    jobs,
    rerank,
    search,
    starting,
    status,
)
from linker.server.api.routes.common import ProblemDetails
from linker.server.api.served import Service
from linker.server.config import ServeConfig
from linker.server.guard.gate import Gate
from linker.server.shelf import Shelf

# One module per resource; each has a `router`.
ROUTES = (
    search, embeddings, rerank, starting, jobs, indexes, documents, evaluate, status, docs,
)  # fmt: skip
PATHS = ("/v1/", "/metrics", *OPEN)  # path prefixes of the API; the page, if any, serves all other paths
DESCRIPTION = (
    "Search indexes, change their documents, and evaluate runs. Errors are problem details (RFC 9457)."
)


def service_app(config: ServeConfig, shelf: Shelf | None = None) -> FastAPI:
    """Return an application of the API alone; `shelf` holds the open indexes, which the page may share.

    Raises InputError or IndexesError if an index cannot be opened.
    """
    app = FastAPI(title="linker", version=__version__, description=DESCRIPTION, **_QUIET)
    return add_api(app, Service(config, shelf))


_QUIET: dict[str, Any] = {"docs_url": None, "redoc_url": None, "redirect_slashes": False}


def add_api(app: FastAPI, service: Service) -> FastAPI:
    """Add the routes, error handlers and guard to `app`, which then loads the service's encoders at startup and closes
    the service at shutdown."""
    app.state.service = service
    app.drain = service.drain  # type: ignore[attr-defined]
    app.router.lifespan_context = _lifespan
    for module in ROUTES:
        app.include_router(module.router)
    app.add_middleware(Gate, config=service.config, policies=policy_factory(service))
    register(app)
    app.openapi = lambda: described(app)  # type: ignore[method-assign]  # FastAPI's own way to change it
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    with logs.aside(), _reloading(service):
        service.warm()
        following = asyncio.create_task(service.follow())
        yield
        following.cancel()
        service.close()


@contextlib.contextmanager
def _reloading(service: Service) -> Iterator[None]:
    """Reread the tokens and the list of indexes on SIGHUP; an error is logged, and the previous ones stay in use."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield
        return
    loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()

    async def reload() -> None:
        try:
            await asyncio.to_thread(service.reload)
        except (LinkerError, IndexesError) as e:
            logs.event(f"not reloaded: {on_one_line(str(e))}", logging.ERROR)
        else:
            logs.event("reloaded", indexes=len(service.indexes))

    def hang_up() -> None:
        task = loop.create_task(reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    loop.add_signal_handler(signal.SIGHUP, hang_up)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


def described(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, which is generated once and cached."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):  # our errors are problem details
            schemas.pop(name, None)
        for model in (ProblemDetails, EvaluateRequest):  # no route declares these itself
            schemas[model.__name__] = model.model_json_schema()
        app.openapi_schema = made
    return app.openapi_schema


class Joined:
    """The API and the page as one application; each keeps its own guard."""

    def __init__(self, api: FastAPI, page: FastAPI) -> None:
        self._api, self._page = api, page
        self.drain: Callable[[], None] = api.state.service.drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Dispatch a request by its path."""
        if scope["type"] == "lifespan":
            return await self._live(scope, receive, send)
        app: ASGIApp = self._api if scope.get("path", "").startswith(PATHS) else self._page
        return await app(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        try:
            async with contextlib.AsyncExitStack() as stack:
                for app in (self._api, self._page):
                    await stack.enter_async_context(app.router.lifespan_context(app))
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception as e:
            await send({"type": "lifespan.startup.failed", "message": str(e)})
            return
        await send({"type": "lifespan.shutdown.complete"})
