"""The open indexes: searches run in bounded thread pools, and changes to an index run one after another."""

import asyncio
import contextlib
import functools
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from indexes.address import shown
from indexes.errors import BackendUnavailableError, IndexesError, UnknownIdError
from indexes.hybrid import Answer, joined
from indexes.interface import Document
from linker.base.errors import LinkerError
from linker.base.options import values
from linker.engine.engine import Engine
from linker.engine.options import SearchOptions
from linker.scoring.probability import drift
from linker.scoring.ranking import searching
from linker.server.api import batching, changing, logs
from linker.server.api.metrics import ServerMetrics
from linker.server.api.pool import FairPool
from linker.server.config import ServeConfig
from linker.server.errors import ProblemError
from linker.server.jobs.keeper import Jobs
from linker.server.shelf import Shelf

T = TypeVar("T")
FOLLOW = 1.0  # seconds between two checks for new commits
# limits of a small search, which is batched with others
SMALL_TEXTS, SMALL_CHARACTERS, SMALL_K = 8, 20_000, 100
HEAVY_THREADS = 2  # no owner gets both threads
# After this many texts, a larger search yields to others: by default, and with a calibration or a ranker.
PART, CALIBRATED_PART = 16, 200


class Served:
    """One index, by its name in requests; `pool` runs its short calls in threads, and `heavy` its long ones."""

    def __init__(self, name: str, engine: Engine, pool: FairPool, heavy: FairPool) -> None:
        self.name, self.engine, self.pool, self.heavy = name, engine, pool, heavy
        self._writing = asyncio.Lock()
        self._changes = changing.Changes(engine.apply, self.change, capacity=pool.waiting)
        self._batcher = batching.Batcher(self.search_now, pool.run, most=self._most, capacity=pool.waiting)

    @property
    def waiting(self) -> int:
        """The number of searches waiting to begin."""
        return self._batcher.waiting

    @property
    def names(self) -> dict[str, str]:
        """The names by which responses refer to the index's directories; a shard's is the last part of its path."""
        shards = {str(d): d.name for d in self.engine.directories if d != self.engine.directory}
        directory = self.engine.directory
        return {**shards, str(directory): self.name, shown(directory): self.name}

    def without_paths(self, text: str) -> str:
        """Return `text` with names in place of the index's directories, whose location clients must not learn."""
        for directory, name in self.names.items():
            text = text.replace(directory, name)
        return text

    async def search(self, texts: Sequence[str], options: SearchOptions) -> Answer:
        """Search as `Engine.search` does; small searches that wait are batched.

        A search for many texts runs in parts, separately from small ones. Raises the errors of `Engine.search`,
        BusyError if too many searches wait, and ProblemError if the index lacks the requested retriever.
        """
        if len(texts) <= SMALL_TEXTS and sum(map(len, texts)) <= SMALL_CHARACTERS and options.k <= SMALL_K:
            return await self._batcher.search(texts, options)
        # For a calibrated index, drift is reported per part; with a ranker, P(link) is relative to all texts of a
        # part.
        stored = self.engine.collection.manifest.search
        has_probabilities = stored.get("calibration") or stored.get("ranker") or options.reranker
        size = -(-len(texts) // -(-len(texts) // CALIBRATED_PART)) if has_probabilities and texts else PART
        return joined(await self.each(lambda part: self.search_now(part, options), texts, size))

    async def each(
        self, call: Callable[[Sequence[str]], T], texts: Sequence[str], size: int = PART
    ) -> list[T]:
        """Call `call` on parts of `texts`, one after another, separately from small searches; return the results."""
        parts = [texts[start : start + size] for start in range(0, len(texts), size)] or [texts]
        return await self.heavy.run_each(functools.partial(call, part) for part in parts)

    def _most(self) -> int:
        """Return the maximum number of texts per batch: below FEWEST, or its notes would reveal others' scores."""
        calibrated = self.engine.collection.manifest.search.get("calibration")
        return (drift.FEWEST if calibrated else searching.FEWEST) - 1

    def search_now(self, texts: Sequence[str], options: SearchOptions) -> Answer:
        """Search in the calling thread."""
        try:
            return self.engine.search(texts, **values(options))
        except BackendUnavailableError as e:
            hybrid = self.engine.collection.hybrid
            missing = {"dense": hybrid.vectors is None, "bm25": hybrid.text is None}
            # a retriever that the index lacks will not come back later
            if options.mode is not None and missing.get(options.mode):
                raise ProblemError(400, str(e), "no-such-retriever") from None
            raise

    async def put(self, document: Document) -> bool:
        """Store a document; return whether it is new."""
        return not await self._changes.make(document)

    async def delete(self, id_: str) -> None:
        """Delete a document. Raises UnknownIdError."""
        if not await self._changes.make(id_):
            raise UnknownIdError(f"not in the index: {id_!r}")

    async def change(self, call: Callable[[], T]) -> T:
        """Run a call that changes the index, after all earlier changes, and return its result."""
        async with self._writing:
            return await self.pool.run(call)


class Service:
    """All served indexes, and the pools, jobs, metrics and access control that they share."""

    def __init__(self, config: ServeConfig, shelf: Shelf | None = None) -> None:
        """Open the indexes. Raises InputError or IndexesError if one cannot be read."""
        self.config, self.shelf = config, shelf or Shelf()
        self.metrics = ServerMetrics()
        self.pool = FairPool(config.limits.threads, config.limits.waiting, "search")
        # lets each owner run one separate process at a time
        self.aside = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(1))
        self.heavy = FairPool(HEAVY_THREADS, config.limits.waiting, "heavy")
        self.access = config.access
        self.jobs = Jobs(config.limits, config.jobs_folder)
        self.indexes: Mapping[str, Served] = {}
        self.waiting_for = ""  # why the service is not ready yet
        self.draining = False
        self.administering = asyncio.Lock()  # indexes are created and deleted one after another
        self._open(config.indexes())

    def _open(self, directories: Mapping[str, Path]) -> None:
        """Open new indexes and refresh the others; if one cannot be opened, the set of indexes does not change."""
        opened: dict[str, Served] = {}
        for name, directory in directories.items():
            known = self.indexes.get(name)
            if known is not None and known.engine.directory == directory:
                known.engine.refresh()
                opened[name] = known
            else:
                opened[name] = Served(name, self.shelf.engine(directory), self.pool, self.heavy)
        removed = [served for name, served in self.indexes.items() if opened.get(name) is not served]
        self.indexes = dict(sorted(opened.items()))
        for served in removed:
            self.shelf.close_index(served.engine.directory)

    def serve(self, name: str, directory: Path) -> Served:
        """Open an index and serve it from now on. Raises IndexesError if it cannot be read."""
        self._open({**self._directories, name: directory})
        return self.indexes[name]

    def forget(self, name: str) -> None:
        """Stop serving an index."""
        self._open({other: path for other, path in self._directories.items() if other != name})

    @property
    def _directories(self) -> dict[str, Path]:
        return {name: served.engine.directory for name, served in self.indexes.items()}

    def reload(self) -> None:
        """Reread the tokens and open the indexes that now exist; if that raises, nothing changes."""
        tokens = self.access.read_again()
        self._open(self.config.indexes())
        self.access.tokens = tokens

    def drain(self) -> None:
        """Make `/ready` report that the server is shutting down, so that clients send no more requests."""
        self.draining = True

    def look(self) -> None:
        """Set the gauges of the metrics to their current values."""
        open_now = {name: served.engine.collection for name, served in self.indexes.items()}
        sizes = {name: (len(c.rows), c.manifest.generation) for name, c in open_now.items()}
        waiting = sum(served.waiting for served in self.indexes.values())
        self.metrics.look(self.pool.pending + self.heavy.pending + waiting, sizes)

    def warm(self) -> None:
        """Load all encoders in a thread; until they are loaded, `waiting_for` names what is missing."""
        self.waiting_for = "encoders are being loaded"
        threading.Thread(target=self.load_encoders, name="load encoders", daemon=True).start()

    async def follow(self) -> None:
        """Open the last commit of each index every second, until cancelled.

        A search opens the last commit itself, but concurrent searches are answered from the open one, which would be
        old if nobody has searched for a long time.
        """
        while True:
            for served in list(self.indexes.values()):
                with contextlib.suppress(LinkerError, IndexesError, ProblemError):  # searches will report it
                    await served.pool.run(served.engine.refresh)
            await asyncio.sleep(FOLLOW)

    def refresh(self) -> None:
        """Open the last commit of each index. Raises the errors of `Engine.refresh`."""
        for served in self.indexes.values():
            served.engine.refresh()

    def load_encoders(self) -> None:
        """Load all encoders; failures are logged."""
        failed = 0
        for served in self.indexes.values():
            try:
                if served.engine.collection.manifest.encoder is not None:
                    served.engine.embed(["warm"])
            except (LinkerError, IndexesError) as e:
                failed += 1
                logs.event("encoder", logging.ERROR, index=served.name, error=type(e).__name__)
        self.waiting_for = f"encoders that could not be loaded: {failed}; see the log" if failed else ""

    def served(self, name: str | None, lacking: str = "the request names no index") -> Served:
        """Return an index by its name, which may be omitted if there is only one. Raises ProblemError (404, 400)."""
        if name is None and len(self.indexes) == 1:
            (name,) = self.indexes
        if name is not None and name in self.indexes:
            return self.indexes[name]
        known = f"choose one of {', '.join(self.indexes)}"
        if not self.indexes:
            known = "create one, or send the server SIGHUP if one was made meanwhile"
        if name is None:
            raise ProblemError(400, f"{lacking}: {known}", "index-missing")
        raise ProblemError(404, f"there is no index {name!r}: {known}", "unknown-index")

    def close(self) -> None:
        """End the jobs and threads, and close the indexes."""
        self.jobs.close()
        self.pool.close()
        self.heavy.close()
        self.shelf.close()
