"""HTTP connections that end where no whole request comes: uvicorn itself waits without end for the first one."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 10.0  # from the first byte of a request, or a new connection, to the end of its headers


class PatientProtocol(H11Protocol):
    """uvicorn's protocol with an end to its patience."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take what came; where that is no whole request yet, go on waiting."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        self._forget()

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(SECONDS, self.transport.close)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
