"""What stands between the network and the API: names, sizes, tokens, rates, times and headers of every answer."""

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

from linker.service import logs, problems
from linker.service.problems import ProblemError
from linker.service.rates import Rates
from linker.service.served import Service
from linker.service.tokens import Principal
from linker.service.tokens import Scope as TokenScope
from linker.web.hosts import without_port

OPEN = ("/health", "/ready", "/openapi.json")  # they need no token
STREAMED = ":bulk"  # the end of the paths whose bodies are read piece by piece
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
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
        self._rates, self._failures = Rates(service.config.limits.rate), Rates(1.0, 20)

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
            state["principal"] = self._admitted(scope, headers)
            limit = self._limit(scope, headers)
            seconds = None if scope["path"].endswith(STREAMED) else self._service.config.limits.seconds
            async with asyncio.timeout(seconds):
                await self._app(scope, self._limited(receive, limit), sent)
        except Exception as e:
            problem = problems.problem_of(e)
            if problem.status == 500:
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
        """Return who asks. Raises ProblemError where the request must not be answered."""
        config, host = self._service.config, headers.get("host", "")
        if not config.hosts.answers_to(without_port(host)):
            detail = f"this server does not answer to the name {without_port(host)[:100]}: start it with --allow-host"
            raise ProblemError(421, detail, "unknown-host")
        try:
            scope["path"] = unquote_to_bytes(scope["raw_path"]).decode()
        except UnicodeDecodeError:
            raise ProblemError(400, "the path is not UTF-8, percent-encoded", "bad-path") from None
        origin = headers.get("origin")
        is_foreign = origin is not None and not config.hosts.is_own_origin(
            origin, host, proxied=bool(config.proxy_header)
        )
        if is_foreign and scope["method"] not in SAFE:
            raise ProblemError(
                403, "this request came from another site, so nothing was done", "foreign-origin"
            )
        client = (scope.get("client") or ("unknown",))[0]
        principal = self._principal(scope, headers, client)
        wait = self._rates.wait(principal.name if principal is not ANYBODY else client)
        if wait and scope["path"] not in OPEN:
            raise ProblemError(
                429, f"too many requests: wait {wait} seconds", "too-many-requests", retry=wait
            )
        return principal

    def _principal(self, scope: Scope, headers: Headers, client: str) -> Principal:
        config, tokens = self._service.config, self._service.tokens
        if config.proxy_header:
            name = headers.get(config.proxy_header, "")
            if name or scope["path"] in OPEN:
                return Principal(logs.name(name)) if name else ANYBODY
            raise ProblemError(
                401, f"the proxy must name who has signed in, in {config.proxy_header}", "not-signed-in"
            )
        if tokens is None or scope["path"] in OPEN:
            return ANYBODY
        kind, _, token = headers.get("authorization", "").partition(" ")
        principal = tokens.principal(token.strip()) if kind.lower() == "bearer" else None
        if principal is not None:
            return principal
        if wait := self._failures.wait(client):
            raise ProblemError(
                429, f"too many wrong tokens: wait {wait} seconds", "too-many-requests", retry=wait
            )
        detail = "the token is not known" if kind else "a token is needed: Authorization: Bearer TOKEN"
        raise ProblemError(401, detail, "not-signed-in")

    def _limit(self, scope: Scope, headers: Headers) -> int:
        """Return how many bytes the body may have. Raises ProblemError (413) where it says that it has more."""
        limits = self._service.config.limits
        limit = limits.bulk if scope["path"].endswith(STREAMED) else limits.body
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal()) or len(length) > 18 or int(length) > limit:
            raise _too_large(limit)
        return limit

    def _limited(self, receive: Receive, limit: int) -> Receive:
        """Return `receive`, which ends with a ProblemError where a body is too large or does not come."""
        taken, ended, idle = 0, False, self._service.config.limits.idle

        async def receive_limited() -> Message:
            nonlocal taken, ended
            if ended:  # what is waited for is that the client goes away
                return await receive()
            try:
                async with asyncio.timeout(idle):
                    message = await receive()
            except TimeoutError:
                raise ProblemError(
                    408, f"nothing came for {idle:g} seconds: send the body faster", "slow-body"
                ) from None
            taken += len(message.get("body", b""))
            ended = not message.get("more_body", False)
            if taken > limit:
                raise _too_large(limit)
            return message

        return receive_limited

    def _note(self, scope: Scope, request_id: str, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        name = scope["state"]["principal"].name
        logs.event(
            "request", request_id=request_id, method=scope["method"][:10], route=route, status=status or 499,
            ms=round(1000 * seconds, 1), client=(scope.get("client") or ("unknown",))[0], token=name,
        )  # fmt: skip
        if self._service.metrics.is_due():
            self._service.look()
        self._service.metrics.request(route, scope["method"], status or 499, seconds)


class _Sent:
    """`send` with the headers of every answer; it remembers the status, and gives up on a client that reads nothing."""

    def __init__(self, send: Send, request_id: str, idle: float) -> None:
        self._send, self._request_id, self._idle = send, request_id, idle
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers.update({**HEADERS, "x-request-id": self._request_id})
        async with asyncio.timeout(self._idle):
            await self._send(message)


def _too_large(limit: int) -> ProblemError:
    return ProblemError(413, f"the body is larger than {limit:,} bytes: send less at once", "too-large")
