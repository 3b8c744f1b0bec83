"""Errors as problem details (RFC 9457), with the text that the command line prints."""

from __future__ import annotations

import http

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from linker.server.api import logs
from linker.server.errors import ProblemError, problem_of
from linker.server.register import KNOWN

MEDIA_TYPE = "application/problem+json"


def response(problem: ProblemError, request_id: str) -> Response:
    """Return a problem as a response."""
    content = {
        "type": "about:blank",
        "title": http.HTTPStatus(problem.status_code).phrase,
        "status": problem.status_code,
        "detail": problem.detail,
        "code": problem.code,
        "request_id": request_id,
        **problem.more,
    }
    headers = dict(problem.headers or {})
    if problem.status_code == 401:
        headers["www-authenticate"] = 'Bearer realm="linker"'
    return Response(orjson.dumps(content), problem.status_code, headers, MEDIA_TYPE)


def register(app: FastAPI) -> None:
    """Answer an application's errors with problem details; the guard answers all others."""
    for kind in (RequestValidationError, HTTPException, *KNOWN):
        app.add_exception_handler(kind, _handle)


async def _handle(request: Request, error: Exception) -> Response:
    problem, request_id = problem_of(error), getattr(request.state, "request_id", "")
    if problem.status_code == 500:
        logs.fault(request_id, error)
    service = request.app.state.service
    for served in service.indexes.values():  # clients must not learn where an index is on disk
        problem.detail = served.without_paths(problem.detail)
    return response(problem, request_id)
