"""What stands between the network and the page: names, sizes, sign-in, forged requests, headers of every answer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from linker.web import sessions
from linker.web.config import ServeConfig
from linker.web.hosts import without_port
from linker.web.rendering import message

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN = ("/login", "/static/")  # paths that need no sign-in
UPLOAD = "/upload"  # the end of the paths that take files
FOREIGN = message("This request came from another site, so nothing was done.")
LARGE = message("This is more than the server takes at once.")
HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """The outermost layer of the application; it puts the request's `Session` into its state."""

    def __init__(self, app: ASGIApp, config: ServeConfig) -> None:
        self._app, self._config = app, config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused here, or hand it on."""
        if scope["type"] != "http":  # there are no WebSockets; "lifespan" has no sender
            return await (self._app(scope, receive, send) if scope["type"] == "lifespan" else _closed(send))
        request = Request(scope)
        session = sessions.read(request, self._config)
        scope.setdefault("state", {})["session"] = session
        start = time.perf_counter()
        is_static = request.url.path.startswith("/static/")
        refused = self._refused(request, session)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                protect(headers, is_static=is_static)
                headers["server-timing"] = f"page;dur={1000 * (time.perf_counter() - start):.1f}"
                name = f"{sessions.cookie_name(request)}="
                if (
                    session.cookie
                    and not is_static
                    and not any(v.startswith(name) for v in headers.getlist("set-cookie"))
                ):
                    headers.append("set-cookie", sessions.header(name[:-1], session.cookie, request))
            await send(message)

        if refused is not None:
            return await refused(scope, receive, send_guarded)
        return await self._app(scope, _limited(receive, self._limit(request)), send_guarded)

    def _limit(self, request: Request) -> int:
        return self._config.max_upload if request.url.path.endswith(UPLOAD) else self._config.max_form

    def _refused(self, request: Request, session: sessions.Session) -> Response | None:
        """Return the answer to a request that must not reach a page, or None."""
        text, host = session.language.text, request.headers.get("host", "")
        if not self._config.answered.answers_to(without_port(host)):
            unknown = message("This server does not answer to the name %(host)s. Start it with --allow-host.")
            return PlainTextResponse(text(unknown, host=without_port(host)[:100]), 421)
        origin = request.headers.get("origin")
        if request.method not in SAFE and origin is not None and not self._is_own(origin, host):
            return PlainTextResponse(text(FOREIGN), 403)
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._limit(request):
            return PlainTextResponse(text(LARGE), 413)
        if session.signed_in or request.url.path.startswith(OPEN):
            return None
        if self._config.proxy_header:
            nobody = message("The proxy did not say who you are: it must set the header %(name)s.")
            return PlainTextResponse(text(nobody, name=self._config.proxy_header), 401)
        return RedirectResponse("/login", 303)

    def _is_own(self, origin: str, host: str) -> bool:
        """Whether a page of ours sent the request; a proxy may have changed the host's name on its way."""
        return self._config.answered.is_own_origin(origin, host, proxied=bool(self._config.proxy_header))


def protect(headers: MutableHeaders, *, is_static: bool = False) -> None:
    """Add the security headers; pages hold what people decided, so that no cache keeps them."""
    for name, value in HEADERS.items():
        headers[name] = value
    headers["cache-control"] = "private, max-age=31536000, immutable" if is_static else "no-store"


async def check_form(request: Request) -> AsyncIterator[None]:
    """Refuse what changes something and does not hold the session's token, in a field of the form or a header.

    The files of a form are closed when the request is answered.
    """
    if request.method not in SAFE:
        given = request.headers.get(sessions.CSRF_HEADER, "")
        if not given:
            field = (await request.form()).get(sessions.CSRF_FIELD, "")
            given = field if isinstance(field, str) else ""
        if not sessions.is_same(given, request.state.session.csrf):
            await request.close()
            raise HTTPException(403, "csrf")
    try:
        yield
    finally:
        await request.close()


def _limited(receive: Receive, limit: int) -> Receive:
    taken = 0

    async def receive_limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise HTTPException(413)
        return message

    return receive_limited


async def _closed(send: Send) -> None:
    await send({"type": "websocket.close", "code": 1000})
