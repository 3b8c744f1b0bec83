"""What stands between the network and the page: sign-in, forged requests, headers of every answer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from linker.server.config import ServeConfig
from linker.server.guard.access import is_same
from linker.server.guard.admission import SAFE, SMALL, Admission, Bounds, RefusedError, bounded, patient
from linker.server.page import sessions
from linker.server.page.rendering import message

OPEN = ("/login", "/static/")  # paths that need no sign-in
UPLOAD = "/upload"  # the end of the paths that take files
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
        self._admission = Admission(config.hosts, proxied=bool(config.proxy_header))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused here, or hand it on."""
        if scope["type"] != "http":  # there are no WebSockets; "lifespan" has no sender
            return await (self._app(scope, receive, send) if scope["type"] == "lifespan" else _closed(send))
        request = Request(scope)
        session = sessions.read(request, self._config)
        state = scope.setdefault("state", {})
        state["session"], state["known"] = session, session.signed_in
        sent = _Sent(send, request, session)
        try:
            self._admission.check(scope)
            answer = self._asked_to_sign_in(request, session) or self._app
            await answer(scope, bounded(scope, receive, self._bounds(request, session)), sent)
        except (RefusedError, TimeoutError) as e:
            if not sent.started:
                await _refusal(e, session)(scope, receive, sent)
        return None

    def _bounds(self, request: Request, session: sessions.Session) -> Bounds:
        path = request.url.path
        if path.startswith(OPEN) or not session.signed_in:
            return SMALL
        limits = self._config.limits
        return Bounds(limits.upload, None) if path.endswith(UPLOAD) else Bounds(limits.form)

    def _asked_to_sign_in(self, request: Request, session: sessions.Session) -> Response | None:
        """Return the answer to one who must sign in first, or None."""
        if session.signed_in or request.url.path.startswith(OPEN):
            return None
        if self._config.proxy_header:
            nobody = message("The proxy did not say who you are: it must set the header %(name)s.")
            return PlainTextResponse(session.language.text(nobody, name=self._config.proxy_header), 401)
        return RedirectResponse("/login", 303)


class _Sent:
    """`send` with the headers of every answer."""

    def __init__(self, send: Send, request: Request, session: sessions.Session) -> None:
        self._send, self._request, self._session = patient(send), request, session
        self._begun, self.started = time.perf_counter(), False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self._add(MutableHeaders(scope=message))
        await self._send(message)

    def _add(self, headers: MutableHeaders) -> None:
        is_static = self._request.url.path.startswith("/static/")
        protect(headers, is_static=is_static)
        headers["server-timing"] = f"page;dur={1000 * (time.perf_counter() - self._begun):.1f}"
        name, cookie = sessions.cookie_name(self._request), self._session.cookie
        if (
            cookie
            and not is_static
            and not any(v.startswith(f"{name}=") for v in headers.getlist("set-cookie"))
        ):
            headers.append("set-cookie", sessions.header(name, cookie, self._request))


def _refusal(error: RefusedError | TimeoutError, session: sessions.Session) -> Response:
    refused = error if isinstance(error, RefusedError) else RefusedError("slow-body")
    return PlainTextResponse(
        session.language.text(refused.text, **refused.values), refused.status_code, refused.headers
    )


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
        if not is_same(given, request.state.session.csrf):
            await request.close()
            raise HTTPException(403, "csrf")
    try:
        yield
    finally:
        await request.close()


async def _closed(send: Send) -> None:
    await send({"type": "websocket.close", "code": 1000})
