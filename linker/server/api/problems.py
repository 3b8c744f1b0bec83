"""Errors as problem details (RFC 9457), with the text that the command line prints; never a traceback."""

from __future__ import annotations

import http
import re
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from indexes import errors
from linker.base.errors import InputError, LinkerError
from linker.base.printable import on_one_line, without_credentials
from linker.server.api import logs
from linker.server.api.pool import BusyError
from linker.server.guard.admission import RefusedError

MEDIA_TYPE = "application/problem+json"
OURS = "something went wrong in the server: its log has the details under this request id"
SILENT: Mapping[type[Exception], str] = {
    ClientDisconnect: "the connection was closed before the body had ended",
    TimeoutError: "there was no answer in time: ask for less, or try again later",
}
# The status and code of each kind of error; a subclass comes before its base.
KNOWN: Mapping[type[Exception], tuple[int, str]] = {
    errors.UnknownIdError: (404, "unknown-document"),
    errors.DuplicateIdError: (409, "duplicate-document"),
    errors.BadIdError: (400, "bad-id"),
    errors.BadDocumentError: (400, "bad-document"),
    errors.BadFilterError: (400, "bad-filter"),
    errors.LockedError: (503, "locked"),
    errors.MissingExtraError: (501, "missing-extra"),
    errors.BackendUnavailableError: (503, "unavailable"),
    errors.DamagedError: (500, "damaged-index"),
    errors.FormatVersionError: (500, "unreadable-index"),
    errors.EncoderMismatchError: (500, "encoder-mismatch"),
    errors.IndexesError: (400, "bad-request"),
    InputError: (400, "bad-input"),
    BusyError: (503, "overloaded"),
    LinkerError: (400, "bad-request"),
    ClientDisconnect: (400, "disconnected"),
    TimeoutError: (504, "timeout"),
}


class ProblemError(HTTPException):
    """An answer that is an error: its status, what is wrong and how to mend it, and a code for programs.

    `retry`: seconds after which the same request may succeed. `more`: further members of the answer.
    """

    def __init__(self, status: int, detail: str, code: str, *, retry: int | None = None, **more: Any) -> None:
        super().__init__(status, detail)  # FastAPI lets no other exception out of the reading of a body
        self.status, self.code, self.retry, self.more = status, code, retry, more


def problem_of(error: Exception) -> ProblemError:
    """Return the problem that an exception is to the client; what is no error of its own says nothing of itself."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, RefusedError):
        return ProblemError(error.status_code, str(error.detail), error.code, retry=error.retry)
    if isinstance(error, HTTPException):
        phrase = _phrase(error.status_code)
        problem = ProblemError(error.status_code, _sentence(error), phrase.lower().replace(" ", "-"))
        problem.headers = error.headers
        return problem
    for kind, (status, code) in KNOWN.items():
        if isinstance(error, kind):
            text = SILENT.get(kind) or without_credentials(on_one_line(str(error)))
            return ProblemError(status, text, code, retry=1 if status == 503 else None)
    return ProblemError(500, OURS, "internal-error")


def response(problem: ProblemError, request_id: str) -> Response:
    """Return a problem as a response."""
    content = {
        "type": "about:blank",
        "title": _phrase(problem.status),
        "status": problem.status,
        "detail": problem.detail,
        "code": problem.code,
        "request_id": request_id,
        **problem.more,
    }
    headers = dict(problem.headers or {})
    if problem.retry is not None:
        headers["retry-after"] = str(problem.retry)
    if problem.status == 401:
        headers["www-authenticate"] = 'Bearer realm="linker"'
    return Response(orjson.dumps(content), problem.status, headers, MEDIA_TYPE)


def register(app: FastAPI) -> None:
    """Answer errors of an application with problem details; the guard answers those that are nobody's."""
    for kind in (RequestValidationError, HTTPException, *KNOWN):
        app.add_exception_handler(kind, _handle)


async def _handle(request: Request, error: Exception) -> Response:
    problem, request_id = problem_of(error), getattr(request.state, "request_id", "")
    if problem.status == 500:
        logs.fault(request_id, error)
    service = request.app.state.service
    for served in service.indexes.values():  # where an index lies on the disk is nobody's business
        problem.detail = served.without_paths(problem.detail)
    return response(problem, request_id)


def _invalid(error: RequestValidationError) -> ProblemError:
    """Return which fields are wrong and why, without the values that were sent."""
    found = [
        {"pointer": "/".join(map(_token, ("#", *each["loc"][1:]))), "detail": str(each["msg"])}
        for each in error.errors()
    ]
    if any(each["type"] == "json_invalid" for each in error.errors()):
        return ProblemError(400, "the body is not JSON", "not-json")
    first = f"{found[0]['pointer']}: {found[0]['detail']}" if found else "it does not fit the description"
    return ProblemError(422, f"the request cannot be understood: {first}", "invalid-request", errors=found)


def _token(part: object) -> str:
    return re.sub("[\ud800-\udfff]", "�", str(part)).replace("~", "~0").replace("/", "~1")


def _phrase(status: int) -> str:
    return http.HTTPStatus(status).phrase


def _sentence(error: HTTPException) -> str:
    known = {404: "there is no such address", 405: "this address takes another method"}
    return known.get(error.status_code, str(error.detail))
