"""What stands between the network and the API: tokens, rates and headers of every answer."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from linker.server.api import logs, problems
from linker.server.api.pool import OWNER
from linker.server.api.served import Service
from linker.server.errors import ProblemError, problem_of
from linker.server.guard.admission import (
    SMALL,
    Admission,
    Bounds,
    RefusedError,
    address_of,
    bounded,
    patient,
)
from linker.server.guard.rates import Rates
from linker.server.guard.tokens import Principal
from linker.server.guard.tokens import Scope as TokenScope

OPEN = ("/health", "/ready", "/openapi.json")  # they need no token
STREAMED = ":bulk"  # the end of the paths whose bodies are read piece by piece
HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
ANYBODY = Principal("anybody")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_bearer = HTTPBearer(auto_error=False, description="A token of the server's token file.")


def require(scope: TokenScope) -> Any:
    """Return the dependency of a route that needs a scope; it gives the `Principal`."""

    async def check(  # FastAPI calls what is not async in a thread
        request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> Principal:
        principal: Principal = request.state.principal
        if not principal.may(scope):
            raise ProblemError(403, f"this token lacks the scope {scope!r}", "scope-missing")
        return principal

    return Depends(check)


class Guard:
    """The outermost layer of the API. It puts `request_id` and `principal` into the state of a request."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        config = service.config
        self._rates = Rates(config.limits.rate)
        self._admission = Admission(config.hosts, proxied=bool(config.proxy_header))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused here, or hand it on."""
        if scope["type"] != "http":
            return await self._other(scope, receive, send)
        headers, start = Headers(scope=scope), time.perf_counter()
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(16)
        state = scope.setdefault("state", {})
        state["request_id"], state["principal"] = request_id, Principal("nobody", frozenset())
        self._service.metrics.began()
        sent = _Sent(send, request_id, self._service.config.limits.idle)
        try:
            state["principal"] = principal = self._admitted(scope, headers)
            state["known"] = principal is not ANYBODY
            OWNER.set(address_of(scope) if principal is ANYBODY else principal.name)
            bounds = self._bounds(scope)
            async with asyncio.timeout(bounds.seconds):
                await self._app(scope, bounded(scope, receive, bounds), sent)
        except asyncio.CancelledError:  # the server ends before this request does
            if not sent.status:
                ending = ProblemError(503, "the server is ending: ask again", "ending", retry=1)
                await problems.response(ending, request_id)(scope, receive, sent)
            raise
        except Exception as e:
            problem = problem_of(e)
            if problem.status_code == 500:
                logs.fault(request_id, e)
            if not sent.status:
                await problems.response(problem, request_id)(scope, receive, sent)
        finally:
            self._note(scope, request_id, sent.status, time.perf_counter() - start)
        return None

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    def _admitted(self, scope: Scope, headers: Headers) -> Principal:
        """Return who asks. Raises ProblemError or RefusedError where the request must not be answered."""
        self._admission.check(scope)
        try:
            scope["path"] = unquote_to_bytes(scope["raw_path"]).decode()
        except UnicodeDecodeError:
            raise ProblemError(400, "the path is not UTF-8, percent-encoded", "bad-path") from None
        client = address_of(scope)
        principal = self._principal(scope, headers, client)
        wait = self._rates.wait(principal.name if principal is not ANYBODY else client)
        if wait and scope["path"] not in OPEN:
            raise RefusedError("too-many-requests", retry=wait, seconds=wait)
        return principal

    def _principal(self, scope: Scope, headers: Headers, client: str) -> Principal:
        config, access = self._service.config, self._service.access
        if config.proxy_header:
            name = headers.get(config.proxy_header, "")
            if name or scope["path"] in OPEN:
                return Principal(logs.name(name)) if name else ANYBODY
            raise ProblemError(
                401, f"the proxy must name who has signed in, in {config.proxy_header}", "not-signed-in"
            )
        if access.tokens is None or scope["path"] in OPEN:
            return ANYBODY
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            raise ProblemError(401, "a token is needed: Authorization: Bearer TOKEN", "not-signed-in")
        principal = access.principal(token.strip(), client)
        if principal is None:
            raise ProblemError(401, "the token is not known", "not-signed-in")
        return principal

    def _bounds(self, scope: Scope) -> Bounds:
        limits = self._service.config.limits
        if scope["path"] in OPEN:
            return SMALL
        if scope["path"].endswith(STREAMED):
            return Bounds(limits.bulk, None, limits.idle)
        return Bounds(limits.body, limits.seconds, limits.idle)

    def _note(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        name = scope["state"]["principal"].name
        logs.event(
            "request", request_id=request_id, method=scope["method"][:10], route=route, status=status or 499,
            ms=round(1000 * seconds, 1), client=address_of(scope), token=name,
        )  # fmt: skip
        if self._service.metrics.is_due():
            self._service.look()
        self._service.metrics.request(route, scope["method"], status or 499, seconds)


class _Sent:
    """`send` with the headers of every answer; it remembers the status."""

    def __init__(self, send: Send, request_id: str, idle: float) -> None:
        self._send, self._request_id = patient(send, idle), request_id
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers.update({**HEADERS, "x-request-id": self._request_id})
        await self._send(message)
