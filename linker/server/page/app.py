"""The application: one router per page behind one guard, and errors as pages, in the reader's language."""

import contextlib
import functools
from collections.abc import AsyncIterator

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from indexes.errors import IndexesError, reason_of
from linker.base.errors import LinkerError
from linker.base.version import __version__
from linker.review.project import Workspace
from linker.server.api.logs import fault
from linker.server.config import ServeConfig
from linker.server.errors import NOT_YOURS, problem_of
from linker.server.guard.gate import Gate
from linker.server.jobs.keeper import Jobs
from linker.server.page import (
    account,
    compare,
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
)
from linker.server.page.guard import check_form, policy_factory, protect
from linker.server.page.rendering import FOLDER, NOT_READY, address, message, page, translate
from linker.server.page.reviews import NamelessError, NotReadyError
from linker.server.shelf import Shelf


def register(app: FastAPI) -> None:
    """Register the handlers of all errors."""
    for kind in (HTTPException, RequestValidationError, LinkerError, IndexesError):
        app.add_exception_handler(kind, _known)
    app.add_exception_handler(NotReadyError, _not_ready)
    app.add_exception_handler(NamelessError, _nameless)
    app.add_exception_handler(Exception, _ours)


async def _known(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    if isinstance(error, LinkerError | IndexesError) and not problem.text:
        return page(request, "error.html", error=reason_of(error), status=400)
    text = translate(request).text(problem.text, **problem.values) if problem.text else str(problem.detail)
    answer = page(request, "error.html", error=text, status=problem.status_code)
    answer.headers.update(problem.headers or {})
    return answer


async def _not_ready(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotReadyError)
    values = {"reason": translate(request).text(NOT_READY)}
    return page(request, "not_ready.html", values, project=error.project, status=409)


async def _nameless(request: Request, error: Exception) -> Response:
    text = message("Nothing was stored: first say who judges.")
    key = request.path_params.get("project", "")
    back = address(request, "judge", project=key) if key else "/"
    return page(request, "name.html", {"back": back}, error=text, status=403)


async def _ours(request: Request, error: Exception) -> Response:
    fault("", error)
    response = page(request, "error.html", error=NOT_YOURS, status=500)
    protect(response.headers)  # the guard does not do this here, since this handler runs outside of it
    return response


# One module per page; each has a `router`. A path `/p/{project}/…` takes InProject or InReview of `reviews`.
PAGES = (
    account, start, projects, setup, search, seeds, rows, judge, progress, links, compare, map, groups, group_pairs,
    export, settings,
)  # fmt: skip


def create_app(config: ServeConfig, shelf: Shelf | None = None) -> FastAPI:
    """Return the application for one folder; `shelf` holds the open indexes and reviews, which the API may share.

    Raises InputError if the folder cannot be used for reviews.
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
    app.add_middleware(Gate, config=config, policies=policy_factory(config))
    register(app)
    return app
