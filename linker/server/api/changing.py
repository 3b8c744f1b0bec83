"""Change single documents; waiting changes are made together, in one commit."""

import asyncio
import contextlib
import contextvars
from collections.abc import Awaitable, Callable, Sequence

from indexes.errors import BackendUnavailableError, LockedError
from indexes.interface import Document
from linker.server.api.pool import OWNER, BusyError, Waiting

MOST = 256  # maximum number of changes in a commit
WINDOW = 0.01  # seconds to wait for the last commit's clients to send another change; a commit takes longer

Change = Document | str  # a document to put, or the id of one to delete
Apply = Callable[[Sequence[Change]], list[bool]]
Run = Callable[[Callable[[], list[bool]]], Awaitable[list[bool]]]
_Change = Waiting[Change, bool]


class Changes:
    """Makes the changes requested in one event loop, in order."""

    def __init__(self, apply: Apply, run: Run, *, capacity: int) -> None:
        """Make changes with `apply`, such as `Engine.apply`; `run` calls it in a thread once it may write.

        `capacity`: maximum number of waiting changes per owner.
        """
        self._apply, self._run, self._capacity = apply, run, capacity
        self._waiting: dict[_Change, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._wanted, self._enough = 0, asyncio.Event()

    async def make(self, change: Change) -> bool:
        """Make a change durable; return whether a document with that id existed just before it.

        Raises BusyError if too many changes wait, and the errors of `apply`. If a caller gives up before its change has
        begun, the change is withdrawn.
        """
        owner = OWNER.get()
        if sum(one.owner == owner for one in self._waiting) >= self._capacity:
            raise BusyError("too many changes are waiting: try again later")
        one = _Change(change)
        self._waiting[one] = None
        if len(self._waiting) >= self._wanted:
            self._enough.set()
        if self._task is None:
            # The task gets a context of its own, since it works for all owners.
            self._task = asyncio.create_task(self._serve(), context=contextvars.Context())
        try:
            return await one.future
        finally:
            self._waiting.pop(one, None)

    async def _serve(self) -> None:
        try:
            while self._waiting:
                made = await self._commit(self._take)
                await self._fill(made + len(self._waiting))
        finally:
            self._task = None

    async def _fill(self, clients: int) -> None:
        """Wait briefly until each of several clients has requested its next change.

        Otherwise, the clients would split into two halves that take turns, each waiting for the other's commit.
        """
        self._wanted, self._enough = clients, asyncio.Event()
        if len(self._waiting) < clients > 1:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._enough.wait(), WINDOW)

    def _take(self) -> list[_Change]:
        taken = list(self._waiting)[:MOST]
        for one in taken:
            self._waiting.pop(one, None)  # a change may have been withdrawn meanwhile
        return taken

    async def _commit(self, take: Callable[[], list[_Change]]) -> int:
        """Make the changes that `take` returns; return how many there were."""
        batch: list[_Change] = []

        def apply() -> list[bool]:
            batch.extend(take())  # taken only now: more may have arrived during other writes
            return self._apply([one.work for one in batch]) if batch else []

        try:
            found = await self._run(apply)
        except Exception as error:
            await self._retry(batch, error)
            return len(batch)
        for one, had in zip(batch, found, strict=True):
            one.answer(had)
        return len(batch)

    async def _retry(self, batch: Sequence[_Change], error: Exception) -> None:
        """Make each change of a failed batch separately, unless the error cannot be due to any one change."""
        if len(batch) > 1 and not isinstance(error, BackendUnavailableError | LockedError):
            for one in batch:
                await self._commit(lambda one=one: [one])  # type: ignore[misc] # bound now
            return
        for one in batch or self._take():
            one.fail(error)
