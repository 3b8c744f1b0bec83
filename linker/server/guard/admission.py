"""Checks that the page and the API make before they answer a request: host name, origin, size and time.

The host and the origin are checked before the body is read; the body must then arrive in time.
"""

import asyncio
import ipaddress
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from linker.review.wording import message
from linker.server.errors import ProblemError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
IDLE = 20.0  # maximum number of seconds between two chunks of a body, or for a client to read one chunk of a response
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
UNKNOWN_HOST = message("This server does not answer to the name %(host)s. Whoever runs linker can allow it.")
FOREIGN = message("This request came from another site, so nothing was done.")
LARGE = message("This is more than the server accepts at once.")
SLOW = message("The request came too slowly. Try again.")
OFTEN = message("There were too many tries. Wait %(seconds)s seconds.")
KINDS = {
    "unknown-host": (421, UNKNOWN_HOST),
    "foreign-origin": (403, FOREIGN),
    "too-large": (413, LARGE),
    "slow-body": (408, SLOW),
    "too-many-requests": (429, OFTEN),
}
# appended for API clients and logs; the page's messages name no options
FLAGS = {"unknown-host": " The option is --allow-host."}


@dataclass(frozen=True, slots=True)
class Hosts:
    """The host names to which a server answers, in lower case, in addition to this machine's own.

    `any_address`: also answer to every IP address, since DNS rebinding affects names only.
    """

    names: tuple[str, ...] = ()
    any_address: bool = False

    @classmethod
    def of(cls, host: str, allowed: Iterable[str] = ()) -> Self:
        """Return the names of a server that listens on `host` and also answers to the `allowed` names."""
        return cls(tuple(name.lower() for name in (host, *allowed)), any_address=not is_loopback(host))

    def answers_to(self, name: str) -> bool:
        """Return whether the server answers requests to this name or address (given without a port)."""
        name = name.strip("[]").lower()
        return name in LOOPBACK or name in self.names or (self.any_address and is_address(name))

    def is_own_origin(self, origin: str, host: str, *, proxied: bool = False) -> bool:
        """Return whether the header Origin names this server; if `proxied`, a proxy may have changed `host` (Host)."""
        try:
            parts = urlsplit(origin)
        except ValueError:  # an unpaired bracket
            return False
        return parts.netloc == host or (proxied and (parts.hostname or "") in self.names)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that listens on `host`."""
    if host == "localhost":
        return True
    return is_address(host) and ipaddress.ip_address(host).is_loopback


def is_address(host: str) -> bool:
    """Return whether `host` is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def without_port(host: str) -> str:
    """Return the name in a header Host, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


class RefusedError(ProblemError):
    """A refused request; `code` is a key of KINDS, and `values` fill in its message."""

    def __init__(self, code: str, *, retry: int | None = None, **values: Any) -> None:
        status, text = KINDS[code]
        super().__init__(
            status, text % values + FLAGS.get(code, ""), code, retry=retry, text=text, values=values
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits on a request body: its size in bytes, and the seconds allowed in total and between two chunks."""

    size: int
    seconds: float | None = 60.0  # None for a stream, which may continue as long as chunks arrive
    idle: float = IDLE


SMALL = Bounds(4 << 10, 5.0, 5.0)  # limits for an unknown client


@dataclass(frozen=True, slots=True)
class Admission:
    """Checks the host and the origin of requests; `proxied`: a proxy may have changed the header Host."""

    hosts: Hosts = field(default_factory=Hosts)
    proxied: bool = False

    def check(self, scope: Scope) -> None:
        """Raise RefusedError if the request names another host, or comes from another site's page."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self.hosts.answers_to(without_port(host)):
            raise RefusedError("unknown-host", host=without_port(host)[:100])
        origin = headers.get("origin")
        is_foreign = origin is not None and not self.hosts.is_own_origin(origin, host, proxied=self.proxied)
        if is_foreign and scope["method"] not in SAFE:
            raise RefusedError("foreign-origin")


def bounded(scope: Scope, receive: Receive, bounds: Bounds) -> Receive:
    """Wrap `receive` so that it raises RefusedError for a body that is too large or too slow; if Content-Length is too
    large or invalid, raise it at once."""
    length = Headers(scope=scope).get("content-length", "0")
    if not (length.isascii() and length.isdecimal()) or len(length) > 18 or int(length) > bounds.size:
        raise RefusedError("too-large")
    size, ended, begun = 0, False, time.monotonic()

    async def receive_bounded() -> Message:
        nonlocal size, ended
        if ended:  # after the body, `receive` waits for the client to disconnect
            return await receive()
        remaining = bounds.idle if bounds.seconds is None else begun + bounds.seconds - time.monotonic()
        try:
            async with asyncio.timeout(min(remaining, bounds.idle)):
                received = await receive()
        except TimeoutError:
            raise RefusedError("slow-body") from None
        size += len(received.get("body", b""))
        ended = not received.get("more_body", False)
        if size > bounds.size:
            raise RefusedError("too-large")
        return received

    return receive_bounded


def patient(send: Send, idle: float = IDLE) -> Send:
    """Wrap `send` so that it raises TimeoutError if the client reads nothing for `idle` seconds."""

    async def send_patiently(sent: Message) -> None:
        async with asyncio.timeout(idle):
            await send(sent)

    return send_patiently


def address_of(scope: Scope) -> str:
    """Return the IP address of the client that sent a request."""
    return str((scope.get("client") or ("unknown",))[0])
