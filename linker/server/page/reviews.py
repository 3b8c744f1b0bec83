"""The reviews that are open: each with its index, its ledger and its session, opened on first use and then kept."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from indexes.interface import IndexesError
from indexes.sharded import manifests_of
from linker.base.errors import InputError
from linker.engine.engine import Engine
from linker.review.ledger import Ledger
from linker.review.project import Project, Workspace
from linker.review.session import Review
from linker.review.session.opening import open_review
from linker.server.page.sessions import Session


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """One review, ready: several threads may use all of it.

    `copies` remembers the near duplicates of documents; `computed`, what a page last made, with what it was made of.
    """

    project: Project
    engine: Engine
    ledger: Ledger
    review: Review
    copies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    computed: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def once(self, name: str, of: Any, compute: Callable[[], Any]) -> Any:
        """Return what `compute` made of `of`, made again where that is no longer equal to what it was."""
        known = self.computed.get(name)
        if known is None or known[0] != of:
            self.computed[name] = known = (of, compute())
        return known[1]


class Reviews:
    """The open reviews of a workspace, by the keys of their projects."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._opened: dict[str, Opened] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> Opened:
        """Return a review, opened if it is not yet. Raises InputError or IndexesError where that is not possible."""
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:  # opening takes seconds: others need not wait for it
            if key not in self._opened:
                project = self.workspace.project(key)
                self._opened[key] = Opened(project, *open_review(project))
            return self._opened[key]

    def prepare(self, key: str) -> None:
        """Open a review, and train its first model, while its reader is still at another page."""
        if key not in self._opened:
            threading.Thread(target=self._prepare, args=(key,), daemon=True).start()

    def _prepare(self, key: str) -> None:
        with contextlib.suppress(InputError, IndexesError, OSError):  # Judge says what is wrong
            opened = self.get(key)
            if not opened.project.ready:  # it was deleted meanwhile
                self.forget(key)
            else:
                opened.review.prepare()

    def size(self, project: Project) -> int:
        """Return how many documents a review has; 0 where there is no index, or it cannot be read."""
        opened = self._opened.get(project.key)
        if opened is not None:
            return opened.engine.collection.manifest.documents
        try:
            return sum(m.documents for m in manifests_of(project.index)) if project.ready else 0
        except (IndexesError, OSError):
            return 0

    def forget(self, key: str) -> None:
        """Close a review, whose index has changed or is about to be deleted; the next `get` opens it again."""
        opened = self._opened.pop(key, None)
        if opened is not None:
            opened.ledger.close()

    def close(self) -> None:
        """Close all of them."""
        for key in list(self._opened):
            self.forget(key)


def of_request(request: Request) -> Reviews:
    """Return the open reviews of the application."""
    reviews: Reviews = request.app.state.reviews
    return reviews


def project_of(request: Request, project: str) -> Project:
    """Return the project that the path names (`{project}`), or answer 404. Raises InputError if it is broken."""
    try:
        found = of_request(request).workspace.project(project)
    except InputError as e:
        raise HTTPException(404, str(e)) from None
    if found.problem:
        raise InputError(found.problem)
    return found


def opened_of(request: Request, project: Annotated[Project, Depends(project_of)]) -> Opened:
    """Return the review that the path names; a project without an index is answered with its next step."""
    if not project.ready:
        raise NotReadyError(project)
    return of_request(request).get(project.key)


class NotReadyError(Exception):
    """A project has no index yet, so that only its upload page can be shown."""

    def __init__(self, project: Project) -> None:
        super().__init__(project.name)
        self.project = project


def reader_of(request: Request) -> Session:
    """Return the session of a reader who has a name: without one, nobody could tell two of them apart."""
    session: Session = request.state.session
    if not session.reviewer:
        raise NamelessError
    return session


class NamelessError(Exception):
    """Somebody without a name wants to judge."""


Reader = Annotated[Session, Depends(reader_of)]
InProject = Annotated[Project, Depends(project_of)]
InReview = Annotated[Opened, Depends(opened_of)]
