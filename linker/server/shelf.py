"""The indexes and reviews open in one application, shared by the page, the API and MCP."""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from indexes.interface import IndexesError
from indexes.sharded import manifests_of
from linker.base.errors import InputError
from linker.engine.engine import Engine
from linker.review.ledger import Ledger
from linker.review.project import Project
from linker.review.session import Review

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """An open review, ready for use by several threads.

    `copies` caches the near duplicates of documents; `computed`, the last values a page computed, with their inputs.
    """

    project: Project
    engine: Engine
    ledger: Ledger
    review: Review
    copies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    computed: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def close(self) -> None:
        """Close its ledger, and that of its groups if a page has opened it."""
        for ledger in (self.ledger, *(value for _, value in self.computed.values())):
            if isinstance(ledger, Ledger):
                ledger.close()

    def once(self, name: str, of: Any, compute: Callable[[], T]) -> T:
        """Return the result of `compute`, cached until `of` is no longer equal to its previous value."""
        known = self.computed.get(name)
        if known is None or known[0] != of:
            self.computed[name] = known = (of, compute())
        return cast(T, known[1])

    def read_once(self, name: str, path: Path, read: Callable[[Path], T]) -> T | None:
        """Return the result of `read` for a file, cached until the file changes; None if there is no file."""
        try:
            of = path.stat()
        except OSError:
            return None
        return self.once(name, (of.st_mtime_ns, of.st_size), lambda: read(path))


class Shelf:
    """Opens each index and each review on first use, and keeps it open; thread-safe."""

    def __init__(self) -> None:
        self._engines, self._reviews = _Cache[Engine](), _Cache[Opened]()

    def engine(self, directory: Path) -> Engine:
        """Return the engine of an index. Raises the same errors as `Engine.open`."""
        return self._engines.get(directory.resolve(), lambda: Engine.open(directory))

    def review(self, project: Project, name: str = "") -> Opened:
        """Return a project's review, or the one called `name`; a folder made by linker 0.2 is marked as a review.

        Raises InputError or IndexesError if it cannot be opened.
        """
        return self._reviews.get(project.ledger_of(name), lambda: self._open(project, name))

    def _open(self, project: Project, name: str) -> Opened:
        project.adopt()
        engine = self.engine(project.index)
        engine.refresh()  # a job may have changed the index
        ledger = Ledger(project.ledger_of(name))
        return Opened(project, engine, ledger, Review(engine, ledger))

    def prepare(self, project: Project) -> None:
        """Open a review, and train its first model, in a thread, while its reviewer is still on another page."""
        if project.ledger not in self._reviews.values:
            threading.Thread(target=self._prepare, args=(project,), daemon=True).start()

    def _prepare(self, project: Project) -> None:
        with contextlib.suppress(InputError, IndexesError, OSError):  # the Judge page reports it
            opened = self.review(project)
            if project.ready:
                if opened.review.settings.learns:  # the page of pairs has lists of its own
                    opened.review.prepare()
            else:  # it was deleted meanwhile
                self.forget(project)

    def size(self, project: Project) -> int:
        """Return how many documents a review has; 0 if there is no index, or it cannot be read."""
        opened = self._reviews.values.get(project.ledger)
        if opened is not None:
            return opened.engine.collection.manifest.documents
        try:
            return sum(m.documents for m in manifests_of(project.index)) if project.ready else 0
        except (IndexesError, OSError):
            return 0

    def close_review(self, project: Project) -> None:
        """Close a review whose index a job has replaced; the next reader opens it again."""
        if opened := self._reviews.values.pop(project.ledger, None):
            opened.close()

    def forget(self, project: Project) -> None:
        """Close a review that is about to be deleted, and release its index; current users may go on using it."""
        self.close_review(project)
        self._engines.values.pop(project.index.resolve(), None)

    def close_index(self, directory: Path) -> None:
        """Close an index that is no longer served."""
        if engine := self._engines.values.pop(directory.resolve(), None):
            engine.close()

    def close(self) -> None:
        """Close all files."""
        for opened in [*self._reviews.values.values()]:
            opened.close()
        for engine in [*self._engines.values.values()]:
            engine.close()
        self._reviews.values.clear()
        self._engines.values.clear()


class _Cache(Generic[T]):
    """A cache of values by path; each is created once."""

    def __init__(self) -> None:
        self.values: dict[Path, T] = {}
        self._locks: dict[Path, threading.Lock] = {}

    def get(self, path: Path, make: Callable[[], T]) -> T:
        """Return a value, created by `make` if there is none; only callers for the same path wait for it."""
        found = self.values.get(path)
        if found is None:
            with self._locks.setdefault(path, threading.Lock()):
                found = self.values.get(path)
                if found is None:
                    found = self.values[path] = make()
        return found
