"""The application: one router per page behind one guard."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator

from fastapi import Depends, FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from linker.base.version import __version__
from linker.review.project import Workspace
from linker.server.config import ServeConfig
from linker.server.guard.gate import Gate
from linker.server.jobs.keeper import Jobs
from linker.server.page import (
    account,
    compare,
    errors,
    export,
    group_pairs,
    groups,
    judge,
    links,
    map,
    progress,
    projects,
    rows,
    running,
    search,
    seeds,
    settings,
    setup,
    start,
    stop,
)
from linker.server.page.guard import asked_by, check_form
from linker.server.page.rendering import FOLDER
from linker.server.shelf import Shelf

# One module per page; each has a `router`. A path `/p/{project}/…` takes InProject or InReview of `reviews`.
PAGES = (
    account, start, projects, setup, search, seeds, rows, judge, progress, links, compare, map, groups, group_pairs,
    export, settings, stop,
)  # fmt: skip


def create_app(config: ServeConfig, shelf: Shelf | None = None) -> FastAPI:
    """Return the application for one folder; `shelf` holds open indexes and reviews, shared with others.

    Raises InputError if the folder cannot hold reviews.
    """
    workspace, opened = Workspace(config.directories[0]), shelf or Shelf()
    jobs = Jobs(running.unhurried(config.limits))

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        jobs.close()
        opened.close()

    app = FastAPI(
        title="linker",
        version=__version__,
        lifespan=lifespan,
        default_response_class=Response,
        dependencies=[Depends(check_form)],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.config, app.state.jobs = config, jobs
    app.state.workspace, app.state.shelf = workspace, opened
    # Cached, since a page has about thirty links, and FastAPI searches all routes for each.
    app.state.path_for = functools.lru_cache(4096)(app.url_path_for)
    for module in PAGES:
        app.include_router(module.router)
    app.mount("/static", StaticFiles(directory=FOLDER / "static"), name="static")
    app.add_middleware(Gate, config=config, asked=asked_by(config))
    errors.register(app)
    return app
