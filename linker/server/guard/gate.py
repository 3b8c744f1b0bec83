"""The outermost layer of the page and the API: refuses inadmissible requests and adds headers to responses."""

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


class RequestPolicy(Protocol):
    """How the page or the API treats one request.

    `idle`: seconds in which a client must read the next chunk of the response. `timed`: the response, too, must be
    complete within the body's time limit.
    """

    idle: float
    timed: bool

    def admit(self) -> ASGIApp | None:
        """Return None to admit a client, or the response that turns it away. Raises errors that `refusal` handles."""

    def bounds(self) -> Bounds:
        """Return the size and time limits of a body from an admitted client."""

    def dress(self, headers: MutableHeaders) -> None:
        """Add the headers common to all responses."""

    def refusal(self, error: BaseException) -> ASGIApp | None:
        """Return the response for an error; None if the guard does not handle it."""

    def ended(self, status: int) -> None:
        """Record the end of the request; `status` is 0 if nothing was answered."""


class Gate:
    """The layer around an application; `policies(scope)` returns the policy for a request."""

    def __init__(self, app: ASGIApp, config: ServeConfig, policies: Callable[[Scope], RequestPolicy]) -> None:
        self._app, self._policies = app, policies
        self._admission = Admission(config.hosts, proxied=bool(config.proxy_header))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or refuse it."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":  # there are no WebSockets
            return await send({"type": "websocket.close", "code": 1000})
        policy = self._policies(scope)
        sender = _Sender(send, policy)
        try:
            self._admission.check(scope)
            answer = policy.admit() or self._app
            bounds = policy.bounds()
            async with asyncio.timeout(bounds.seconds if policy.timed else None):
                await answer(scope, bounded(scope, receive, bounds), sender)
        except (Exception, asyncio.CancelledError) as e:
            refusal = policy.refusal(e)
            if refusal and not sender.status:
                await refusal(scope, receive, sender)
            if refusal is None or isinstance(e, asyncio.CancelledError):
                raise
        finally:
            policy.ended(sender.status)
        return None


class _Sender:
    """Wrap `send`: add the headers common to all responses, and record the status."""

    def __init__(self, send: Send, policy: RequestPolicy) -> None:
        self._send, self._policy = patient(send, policy.idle), policy
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._policy.dress(MutableHeaders(scope=message))
        await self._send(message)
