"""The guard between network and page: sign-in, protection against forged requests, response headers."""

import time
from collections.abc import AsyncIterator, Callable, Mapping

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Scope

from linker.server.config import ServeConfig
from linker.server.guard import gate
from linker.server.guard.access import is_same
from linker.server.guard.admission import IDLE, SAFE, SMALL, Bounds, RefusedError
from linker.server.page import sessions
from linker.server.page.rendering import message

OPEN = ("/login", "/static/")  # paths that need no sign-in
UPLOAD = "/upload"  # suffix of the paths that accept files
HEADERS: Mapping[str, str] = {
    **gate.HEADERS,
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def policy_factory(config: ServeConfig) -> Callable[[Scope], gate.RequestPolicy]:
    """Return a factory of the page's `RequestPolicy`, which puts the `Session` in the request's state."""
    return lambda scope: _PageRequest(scope, config)


class _PageRequest:
    idle, timed = IDLE, False

    def __init__(self, scope: Scope, config: ServeConfig) -> None:
        self._request, self._config, self._begun = Request(scope), config, time.perf_counter()
        self._session = sessions.read(self._request, config)
        state = scope.setdefault("state", {})
        state["session"], state["known"] = self._session, self._session.signed_in

    def admit(self) -> Response | None:
        if self._session.signed_in or self._request.url.path.startswith(OPEN):
            return None
        if self._config.proxy_header:
            nobody = message("The proxy did not say who you are: it must set the header %(name)s.")
            return PlainTextResponse(self._session.language.text(nobody, name=self._config.proxy_header), 401)
        return RedirectResponse("/login", 303)

    def bounds(self) -> Bounds:
        path = self._request.url.path
        if path.startswith(OPEN) or not self._session.signed_in:
            return SMALL
        limits = self._config.limits
        return Bounds(limits.upload, None) if path.endswith(UPLOAD) else Bounds(limits.form)

    def dress(self, headers: MutableHeaders) -> None:
        is_static = self._request.url.path.startswith("/static/")
        protect(headers, is_static=is_static)
        headers["server-timing"] = f"page;dur={1000 * (time.perf_counter() - self._begun):.1f}"
        name, cookie = sessions.cookie_name(self._request), self._session.cookie
        given = any(value.startswith(f"{name}=") for value in headers.getlist("set-cookie"))
        if cookie and not is_static and not given:
            headers.append("set-cookie", sessions.header(name, cookie, self._request))

    def refusal(self, error: BaseException) -> Response | None:
        if not isinstance(error, RefusedError | TimeoutError):
            return None  # the application answers errors with a page
        refused = error if isinstance(error, RefusedError) else RefusedError("slow-body")
        text = self._session.language.text(refused.text, **refused.values)
        return PlainTextResponse(text, refused.status_code, refused.headers)

    def ended(self, status: int) -> None:
        pass  # the page keeps no log


def protect(headers: MutableHeaders, *, is_static: bool = False) -> None:
    """Add the security headers; pages hold people's decisions, so they must not be cached."""
    for name, value in HEADERS.items():
        headers[name] = value
    headers["cache-control"] = "private, max-age=31536000, immutable" if is_static else "no-store"


async def check_form(request: Request) -> AsyncIterator[None]:
    """Refuse a state-changing request without the session's token in a form field or a header.

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
