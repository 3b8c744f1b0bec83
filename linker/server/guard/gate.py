"""The outermost layer of the page and the API: refuses requests that must not be answered, and adds headers to
answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from linker.server.config import ServeConfig
from linker.server.guard.admission import Admission, Bounds, bounded, patient

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
}


class Asked(Protocol):
    """One request, as seen by the page or the API.

    `idle`: seconds in which a client must take the next chunk of an answer. `timed`: the answer, too, must come
    within the body's time limit.
    """

    idle: float
    timed: bool

    def admit(self) -> ASGIApp | None:
        """Return the answer to a client that may not proceed, or None. Raises the errors that `refusal` answers."""

    def bounds(self) -> Bounds:
        """Return the size and time limits of a body from an admitted client."""

    def dress(self, headers: MutableHeaders) -> None:
        """Add the headers of every answer."""

    def refusal(self, error: BaseException) -> ASGIApp | None:
        """Return the answer to an error; None if the guard does not handle it."""

    def ended(self, status: int) -> None:
        """Record the end of the request; `status` is 0 if nothing was answered."""


class Gate:
    """The layer around an application; `asked` turns a request's scope into the page's or the API's view of it."""

    def __init__(self, app: ASGIApp, config: ServeConfig, asked: Callable[[Scope], Asked]) -> None:
        self._app, self._asked = app, asked
        self._admission = Admission(config.hosts, proxied=bool(config.proxy_header))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused here, or pass it on."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":  # there are no WebSockets
            return await send({"type": "websocket.close", "code": 1000})
        asked = self._asked(scope)
        sent = _Sent(send, asked)
        try:
            self._admission.check(scope)
            answer = asked.admit() or self._app
            bounds = asked.bounds()
            async with asyncio.timeout(bounds.seconds if asked.timed else None):
                await answer(scope, bounded(scope, receive, bounds), sent)
        except (Exception, asyncio.CancelledError) as e:
            refusal = asked.refusal(e)
            if refusal and not sent.status:
                await refusal(scope, receive, sent)
            if refusal is None or isinstance(e, asyncio.CancelledError):
                raise
        finally:
            asked.ended(sent.status)
        return None


class _Sent:
    """Wrap `send`: add the headers common to all responses, and record the status."""

    def __init__(self, send: Send, asked: Asked) -> None:
        self._send, self._asked = patient(send, asked.idle), asked
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._asked.dress(MutableHeaders(scope=message))
        await self._send(message)
