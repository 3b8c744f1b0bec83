"""HTTP connections that nobody can hold open: deadlines for headers, a connection limit, closing on SIGTERM.

uvicorn itself waits forever for the first request, accepts connections until the system has no descriptors left, and
at shutdown closes keep-alive connections despite requests in flight.
"""

import asyncio
import contextlib
import resource
import time
from collections import Counter

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 10.0  # from the first byte of a request, or a new connection, to the end of its headers
LINGER = 1.0  # seconds at shutdown in which a keep-alive connection may send one more request
MOST, MOST_OF_ONE = 1024, 256  # maximum number of concurrent connections: in total, and per address
FILES = 1024  # descriptors reserved for indexes, ledgers and uploads
_CLOSE = (b"connection", b"close")
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class PatientProtocol(H11Protocol):
    """uvicorn's protocol with deadlines.

    If there are too many connections, the one that has waited longest for its request is closed to make room for the
    new one. Connections that are being answered, or that carry a signed-in user's request, stay open.
    """

    _deadline: asyncio.TimerHandle | None = None
    _since = 0.0  # time at which this connection began to wait

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._since = time.monotonic()
        if self._make_room():
            self._watch()
        else:
            transport.write(_BUSY)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse the received data; until the headers of a request are complete, its deadline stays."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._since = time.monotonic()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self._forget()

    def shutdown(self) -> None:
        """Answer the request in progress, and one more if it comes soon, announcing that it is the last."""
        if _CLOSE not in self.server_state.default_headers:
            self.server_state.default_headers = [*self.server_state.default_headers, _CLOSE]
        self._unset_keepalive_if_required()
        self._forget()
        if self._is_idle:
            self._deadline = self.loop.call_later(LINGER, self.transport.close)
        else:
            self.cycle.default_headers = self.server_state.default_headers
            self.cycle.keep_alive = False

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def _may_go(self) -> bool:
        """Whether this connection may be closed: it waits for a request or, if nobody is signed in, for a body."""
        known = not self._is_idle and self.cycle.scope["state"].get("known")
        return not self.transport.is_closing() and (self._is_idle or (self.cycle.more_body and not known))

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _make_room(self) -> bool:
        """If there are too many connections, close the one that has waited longest; return whether there is room."""
        there = [
            c for c in self.connections if isinstance(c, PatientProtocol) and not c.transport.is_closing()
        ]
        counts = Counter(c._address for c in there)
        crowded = self._address
        if counts[crowded] <= self._most_of_one and len(there) <= MOST:
            return True
        if counts[crowded] <= self._most_of_one:
            crowded = counts.most_common(1)[0][0]
        waiting = [c for c in there if c is not self and c._may_go and c._address == crowded]
        if waiting:
            min(waiting, key=lambda c: c._since).transport.close()
        return bool(waiting)

    @property
    def _most_of_one(self) -> int:
        # behind a proxy, all connections come from its address
        return MOST if self.config.proxy_headers else MOST_OF_ONE

    def _watch(self) -> None:
        if not self._is_idle:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(SECONDS, self.transport.close)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def allow_descriptors() -> None:
    """Allow this process as many open files as its connections and indexes need, if the system permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST + FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
