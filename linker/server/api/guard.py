"""The layer between the network and the API: tokens, rates, headers of all responses, and errors as problem details.

Problem details (RFC 9457) have the text that the command line prints.
"""

import http
import re
import secrets
import time
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

import orjson
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from linker.server.api import logs
from linker.server.api.pool import OWNER
from linker.server.api.served import Service
from linker.server.errors import ProblemError, problem_of
from linker.server.guard import gate
from linker.server.guard.access import Rates
from linker.server.guard.admission import SMALL, Bounds, RefusedError, address_of
from linker.server.guard.tokens import Principal
from linker.server.guard.tokens import Scope as TokenScope
from linker.server.register import KNOWN

MEDIA_TYPE = "application/problem+json"
DOCS = ("/docs", "/docs/start.js", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css")
OPEN = ("/health", "/ready", "/openapi.json", *DOCS)  # paths that need no token
STREAMED = (":bulk", "/snapshot")  # suffixes of paths whose bodies are read piece by piece
HEADERS = {
    **gate.HEADERS,
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
# Swagger UI sets style attributes, and has its icons as data.
DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'"
)
ANYBODY = Principal("anybody")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_bearer = HTTPBearer(auto_error=False, description="A token of the server's token file.")


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
    """Answer errors inside the application with problem details; the guard answers those outside it."""
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


def require(scope: TokenScope) -> Any:
    """Return the dependency for a route that needs a scope; it provides the `Principal`."""

    async def check(  # async, since FastAPI calls other functions in a thread
        request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> Principal:
        principal: Principal = request.state.principal
        if not principal.may(scope):
            raise ProblemError(403, f"this token lacks the scope {scope!r}", "scope-missing")
        return principal

    return Depends(check)


def policy_factory(service: Service) -> Callable[[Scope], gate.RequestPolicy]:
    """Return a factory of the API's `RequestPolicy`, which puts `request_id` and `principal` in the request's state."""
    rates = Rates(service.config.limits.rate)
    return lambda scope: _ApiPolicy(scope, service, rates)


class _ApiPolicy:
    timed = True

    def __init__(self, scope: Scope, service: Service, rates: Rates) -> None:
        self._scope, self._headers, self._start = scope, Headers(scope=scope), time.perf_counter()
        self._service, self._rates, self.idle = service, rates, service.config.limits.idle
        given = self._headers.get("x-request-id", "")
        self._request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(16)
        self._state = scope.setdefault("state", {})
        self._state["request_id"] = self._request_id
        self._state["principal"] = Principal("nobody", frozenset())
        self._service.metrics.begin()

    def admit(self) -> None:
        scope = self._scope
        try:
            scope["path"] = unquote_to_bytes(scope["raw_path"]).decode()
        except UnicodeDecodeError:
            raise ProblemError(400, "the path is not percent-encoded UTF-8", "bad-path") from None
        client = address_of(scope)
        principal = self._principal(scope, self._headers, client)
        name = client if principal is ANYBODY else principal.name
        wait = self._rates.wait(name)
        if wait and scope["path"] not in OPEN:
            raise RefusedError("too-many-requests", retry=wait, seconds=wait)
        self._state["principal"], self._state["known"] = principal, principal is not ANYBODY
        OWNER.set(name)

    def bounds(self) -> Bounds:
        limits, path = self._service.config.limits, self._scope["path"]
        if path in OPEN:
            return SMALL
        if path.endswith(STREAMED):
            return Bounds(limits.bulk, None, limits.idle)
        return Bounds(limits.body, limits.seconds, limits.idle)

    def dress(self, headers: MutableHeaders) -> None:
        headers.update({**HEADERS, "x-request-id": self._request_id})
        if self._scope["path"] in DOCS:
            headers["content-security-policy"] = DOCS_POLICY

    def refusal(self, error: BaseException) -> Response:
        if not isinstance(error, Exception):  # the server shuts down before this request ends
            problem = ProblemError(503, "the server is shutting down: try again", "ending", retry=1)
        else:
            problem = problem_of(error)
            if problem.status_code == 500:
                logs.fault(self._request_id, error)
        return response(problem, self._request_id)

    def ended(self, status: int) -> None:
        route = getattr(self._scope.get("route"), "path", "unknown")
        seconds = time.perf_counter() - self._start
        logs.event(
            "request", request_id=self._request_id, method=self._scope["method"][:10], route=route,
            status=status or 499, ms=round(1000 * seconds, 1), client=address_of(self._scope),
            token=self._state["principal"].name,
        )  # fmt: skip
        if self._service.metrics.is_due():
            self._service.look()
        self._service.metrics.request(route, self._scope["method"], status or 499, seconds)

    def _principal(self, scope: Scope, headers: Headers, client: str) -> Principal:
        config, access = self._service.config, self._service.access
        if config.proxy_header:
            name = headers.get(config.proxy_header, "")
            if name or scope["path"] in OPEN:
                return Principal(logs.name(name)) if name else ANYBODY
            raise ProblemError(
                401, f"the proxy must name the signed-in user in {config.proxy_header}", "not-signed-in"
            )
        if access.tokens is None or scope["path"] in OPEN:
            return ANYBODY
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            raise ProblemError(401, "no token: send Authorization: Bearer TOKEN", "not-signed-in")
        principal = access.principal(token.strip(), client)
        if principal is None:
            raise ProblemError(401, "the token is not known", "not-signed-in")
        return principal
