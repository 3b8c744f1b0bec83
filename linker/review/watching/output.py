"""The files that a watch writes, and its position in the posts: after a crash, it continues exactly there."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable
from io import BufferedWriter
from pathlib import Path
from typing import Self

import orjson

from linker.base.errors import InputError
from linker.base.files import path_text, read_json, write_atomically
from linker.corpora import BadLine
from linker.review.watching.matching import PostMatch
from linker.review.watching.rotation import Position

EVERY = 1.0  # seconds between two commits
VERSION = 1
QUARANTINE, STATE = ".quarantine.jsonl", ".state.json"


class Output:
    """Matches and invalid lines, appended to two files of JSON lines; a third file records their committed sizes.

    They are committed every second and at the end. After a crash, anything written after the last commit is removed and
    its posts are matched again, so that each match is in the file exactly once.
    """

    def __init__(
        self, out: Path | None, quarantine: Path, posts: Path | None, *, resume: bool = False
    ) -> None:
        """Begin a new file or, with `resume`, continue the existing one.

        `posts` is the file that is read, or None if it cannot be read from a position, so that no position is stored.
        Raises InputError if `out` exists without `resume`, if its state is missing, damaged or belongs to other posts,
        or if a file cannot be written.
        """
        self._posts = path_text(posts.resolve()) if posts else ""
        self._state = out.with_name(out.name + STATE) if out and posts else None
        self.position: Position | None = None
        self.refused = 0
        sizes = dict[str, int]()
        if resume:
            sizes = self._last_commit(out)
        elif out and out.exists():
            raise InputError(f"{out} exists: continue it with `resume`, or name another file")
        self._matches = _Growing(out, sizes.get("matches")) if out else None
        self._bad = _Growing(quarantine, sizes.get("quarantine"))
        if self._matches:
            self._matches.open()
        self._commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._commit()
        for file in self._files():
            file.close()

    def add(self, matches: Iterable[PostMatch], bad: Iterable[BadLine], position: Position) -> None:
        """Append the results of a batch, after which the posts up to `position` are done."""
        if self._matches:
            self._matches.append(match.to_json() for match in matches)
        self.refused += self._bad.append(line.to_json() for line in bad)
        for file in self._files():
            file.mark()
        self.position = position
        if time.monotonic() - self._committed >= EVERY:
            self._commit()

    def _files(self) -> list[_Growing]:
        return [self._bad, *([self._matches] if self._matches else [])]

    def _commit(self) -> None:
        """Flush the files to disk, and then record their sizes."""
        for file in self._files():
            file.sync()
        if self._state and self._matches:
            sizes = {"matches": self._matches.whole, "quarantine": self._bad.whole}
            position = dataclasses.asdict(self.position or Position())
            state = {"version": VERSION, "posts": self._posts, "position": position, "sizes": sizes}
            write_atomically(self._state, orjson.dumps(state) + b"\n")
        self._committed = time.monotonic()

    def _last_commit(self, out: Path | None) -> dict[str, int]:
        """Read the files' sizes at the last commit, and the position in the posts."""
        if self._state is None or out is None:
            raise InputError("`resume` needs `out` and a file of posts: a pipe cannot be read again")
        if not self._state.exists():
            if out.exists():
                raise InputError(f"{self._state} is missing, so {out} cannot be continued: name another file")
            return {}
        state = read_json(self._state)
        try:
            if (state["version"], state["posts"]) != (VERSION, self._posts):
                raise InputError(f"{self._state} belongs to {state['posts']}: name another file with `out`")
            position = Position(**state["position"])
            self.position = position if position.inode else None
            return {name: int(state["sizes"][name]) for name in ("matches", "quarantine")}
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{self._state} is damaged: name another file with `out`") from None


class _Growing:
    """A file of JSON lines, opened when needed; `whole`: its size after the last complete batch."""

    def __init__(self, path: Path, whole: int | None) -> None:
        """With `whole`, the file is first truncated to that size; otherwise, its whole content stays."""
        self._path = path
        self.whole = whole if whole is not None else path.stat().st_size if path.is_file() else 0
        self._open: BufferedWriter | None = None

    def open(self) -> BufferedWriter:
        """Open the file if it is not open. Raises InputError if it cannot be written or is shorter than `whole`."""
        if self._open is None:
            try:
                file = self._path.open("ab")
                if file.tell() < self.whole:
                    raise InputError(f"{self._path} is shorter than it was: name another file with `out`")
                file.truncate(self.whole)
                file.seek(0, os.SEEK_END)  # otherwise `tell` would still count the truncated bytes
            except OSError as e:
                raise InputError(f"cannot write {self._path}: {e.strerror}") from e
            self._open = file
        return self._open

    def append(self, records: Iterable[object]) -> int:
        """Append records; return how many."""
        count = 0
        for count, record in enumerate(records, start=1):  # noqa: B007
            self.open().write(orjson.dumps(record) + b"\n")
        return count

    def mark(self) -> None:
        """Mark the appended records as complete."""
        if self._open:
            self.whole = self._open.tell()

    def sync(self) -> None:
        """Flush the file to disk."""
        if self._open:
            self._open.flush()
            os.fsync(self._open.fileno())

    def close(self) -> None:
        """Remove any incomplete batch, and close the file."""
        if self._open:
            self._open.flush()
            self._open.truncate(self.whole)
            self._open.close()
