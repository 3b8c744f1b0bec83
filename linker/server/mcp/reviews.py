"""The served indexes by name, and their reviews, which pick up changes that other processes make to their ledgers."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from indexes.address import shown
from linker.base.errors import InputError
from linker.engine.engine import Engine
from linker.review.interface import Candidate, LanguageCount, Progress, Seed, Verdict
from linker.review.project import Project, Workspace
from linker.server.shelf import Opened, Shelf

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")

# A review's progress, a reason to stop (empty while reading should continue), and the counts of each language.
Report = tuple[Progress, str, list[LanguageCount]]


class Indexes:
    """The served indexes, by the names of their directories; thread-safe."""

    def __init__(self, directories: Sequence[Path]) -> None:
        """Open the indexes in `directories`, each of which is an index or the folder of a review.

        Raises InputError if two have the same name or one has no index, IndexesError if an index cannot be read.
        """
        self._shelf = Shelf()
        self._projects: dict[str, Project] = {}
        for directory in directories:
            project, name = _project(directory), directory.resolve().name
            if name in self._projects:
                raise InputError(f"{directory}: two folders are named {name}: rename one")
            self._shelf.engine(project.index)
            self._projects[name] = project
        self._reviews: dict[tuple[str, str], Followed] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the indexes, in the order they were given."""
        return tuple(self._projects)

    def name(self, index: str) -> str:
        """Return the name of an index; `index` may be empty if there is only one. Raises InputError if unknown."""
        if index in self._projects:
            return index
        if not index and len(self._projects) == 1:
            return next(iter(self._projects))
        wrong = f"there is no index {index!r}" if index else "several indexes are served: say which one"
        raise InputError(f"{wrong}: choose one of {', '.join(self._projects)}")

    def engine(self, name: str) -> Engine:
        """Return the engine of an index by its name, as `name` returns it."""
        return self._shelf.engine(self._projects[name].index)

    def review(self, name: str, review: str) -> Followed:
        """Return a review of an index; the unnamed one is the review that `linker serve` shows for the same
        directory.

        Raises InputError if the name is not valid, or the ledger cannot be read.
        """
        if review and not NAME.fullmatch(review):
            raise InputError(
                f"{review!r} is not a valid review name: use at most 64 lower-case Latin letters, digits and hyphens"
            )
        with self._lock:
            if (name, review) not in self._reviews:
                self._reviews[name, review] = Followed(self._shelf.review(self._projects[name], review))
            return self._reviews[name, review]

    def close(self) -> None:
        """Close all files."""
        self._shelf.close()


class Followed:
    """One review that picks up what others (the page, the command line) write to its ledger meanwhile."""

    def __init__(self, opened: Opened) -> None:
        self._engine, self._ledger, self._review = opened.engine, opened.ledger, opened.review
        self._lock = threading.Lock()
        self._entry = 0  # number of the last ledger entry that the review has processed
        self._entry, self._last_state = self._newest(), self._state()

    def next(self, seeds: Sequence[Seed], reviewer: str) -> tuple[Candidate | None, Seed | None, Report]:
        """Return the document to judge, its seed, and the review's state.

        New `seeds` are added. Raises InputError if the review has other seeds, or none.
        """
        with self._lock:
            self._put(seeds)
            self._follow()
            candidate = self._review.next(reviewer)
            by_id = {seed.id: seed for seed in self._review.seeds}
            seed = by_id.get(candidate.seed) if candidate else None
            return candidate, seed, self._report(self._review.progress())

    def judge(
        self, id_: str, seed: str, verdict: Verdict, reviewer: str, note: str, tags: Sequence[str]
    ) -> tuple[Candidate, Report]:
        """Store a verdict and return the judgement and the review's state.

        A document that `next` did not give this reviewer counts as found by a search outside the queue. Raises
        InputError if the document or the seed does not exist.
        """
        with self._lock:
            self._follow()
            candidate = self._candidate(id_, seed, reviewer)
            progress = self._review.judge(candidate, verdict, reviewer, note, tags)
            # if there are more entries, another process has judged meanwhile, and the ledger must be read again
            if len(self._ledger.history(self._entry)) == 1:
                self._entry, self._last_state = self._newest(), self._state()
            return candidate, self._report(progress)

    def _report(self, progress: Progress) -> Report:
        return progress, self._review.enough(), self._review.languages()

    def _candidate(self, id_: str, seed: str, reviewer: str) -> Candidate:
        names = [s.id for s in self._review.seeds]
        if not names:
            raise InputError("this review has no seeds yet: call find with seeds first")
        if seed and seed not in names:
            raise InputError(
                f"there is no seed {seed!r} in this review: choose one of {', '.join(names[:20])}"
            )
        if id_ not in self._engine:
            raise InputError(f"there is no document {id_!r} in the index: nothing was stored")
        current = self._review.next(reviewer)
        if current is not None and current.id == id_ and seed in ("", current.seed):
            return current
        candidate = self._review.beside(id_)
        return replace(candidate, seed=seed) if seed else candidate

    def _put(self, seeds: Sequence[Seed]) -> None:
        known = {seed.id: seed for seed in self._ledger.seeds}
        if not known and not seeds:
            raise InputError("this review has no seeds yet: send the texts to find links for as seeds")
        if known and seeds and known.keys().isdisjoint(seed.id for seed in seeds):
            raise InputError(
                f"this review has different seeds ({', '.join(list(known)[:5])}): leave seeds out to continue it, "
                "or name another review in the argument `review`"
            )
        if new := [seed for seed in seeds if known.get(seed.id) != seed]:
            self._ledger.put_seeds(new)

    def _follow(self) -> None:
        """Read the ledger again if another process, a new seed or a commit has changed the state."""
        self._engine.refresh()
        newest, now = self._newest(), self._state()
        if (newest, now) != (self._entry, self._last_state):
            self._review.refresh()
            self._entry, self._last_state = newest, now

    def _newest(self) -> int:
        entries = self._ledger.history(self._entry)
        return entries[-1].number if entries else self._entry

    def _state(self) -> tuple[int, object, object]:
        """Return the other state that a review depends on: the index's generation, the seeds and the settings."""
        return self._engine.collection.manifest.generation, self._ledger.seeds, self._ledger.settings


def _project(directory: Path) -> Project:
    """Return the review in a directory, without creating one. Raises InputError if there is none."""
    project = Workspace(directory).single if directory.is_dir() else None
    if project is None:
        raise InputError(f"{shown(directory)} holds no index: build one with `linker index build`")
    return project
