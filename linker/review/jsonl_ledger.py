"""An append-only file of relevance judgements: one JSON object per line, written as soon as it is made."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

from linker.errors import InputError
from linker.files import read_bytes, sync_folder

BEGINNING = b'{"seed":'  # of a ledger's first entry


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether document `id` is relevant (> 0) to `seed`; `score` is its retrieval score."""

    seed: str
    id: str
    relevance: int
    score: float


class Ledger:
    """Judgements in the order they were made; an undo is an entry of its own, and nothing is ever rewritten.

    A last line that a crash or a power loss left incomplete is dropped; any other unreadable line raises InputError.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        """Open or create the file; `durable` flushes every entry to the disk, which takes some milliseconds.

        Raises InputError where the file cannot be read or is not a ledger.
        """
        self.path, self._durable = path, durable
        self._named = False  # the file's name is on the disk: its folder was flushed
        self._given: list[Judgement] = []
        if path.exists():
            self._read()

    def _read(self) -> None:
        data = read_bytes(self.path)
        *lines, tail = data.split(b"\n")
        if not tail and lines and b"\0" in lines[-1]:  # its end reached the disk before its beginning
            tail = lines.pop() + b"\n"
        for number, line in enumerate(lines, start=1):
            if not self._take(line):
                raise InputError(
                    f"{self.path}:{number}: not a judgement: correct the line, or name another file with --ledger"
                )
        if not tail:
            return
        if self._take(tail):  # complete, but an editor removed the newline
            with self.path.open("ab") as file:
                file.write(b"\n")
        elif lines or _is_incomplete(tail):
            os.truncate(self.path, len(data) - len(tail))
        else:
            raise InputError(f"{self.path}:1: not a judgement: name another file with --ledger")

    def _take(self, line: bytes) -> bool:
        """Apply one entry; return whether the line is one."""
        try:
            entry = orjson.loads(line)
            if entry.get("undo"):
                self._given.pop()
                return True
            values = [entry[key] for key in Judgement.__slots__]
        except (orjson.JSONDecodeError, KeyError, AttributeError, IndexError):
            return False
        if not all(isinstance(v, t) for v, t in zip(values, (str, str, int, float | int), strict=True)):
            return False
        self._given.append(Judgement(*values))
        return True

    @property
    def last(self) -> Judgement | None:
        """The judgement that `undo` would remove, or None."""
        return self._given[-1] if self._given else None

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """All judgements that were not undone, in order."""
        return tuple(self._given)

    def add(self, judgement: Judgement) -> None:
        """Append a judgement so that no later crash loses it. Raises InputError where it cannot be written."""
        values = {key: getattr(judgement, key) for key in Judgement.__slots__}
        self._append(values | {"time": datetime.now(UTC).isoformat(timespec="seconds")})
        self._given.append(judgement)

    def undo(self) -> Judgement | None:
        """Undo the last judgement and return it, or None. Raises InputError where the file cannot be written."""
        if not self._given:
            return None
        self._append({"undo": True, "time": datetime.now(UTC).isoformat(timespec="seconds")})
        return self._given.pop()

    def _append(self, entry: dict[str, object]) -> None:
        try:
            with self.path.open("ab") as file:
                file.write(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
                file.flush()
                if self._durable:
                    os.fsync(file.fileno())
            if self._durable and not self._named:
                sync_folder(self.path.resolve().parent)
                self._named = True
        except OSError as e:
            raise InputError(f"cannot write the ledger {self.path}: {e.strerror}") from e


def _is_incomplete(first: bytes) -> bool:
    """Return whether a file's only line may be an entry cut by a crash: nothing else is ever cut off.

    Blocks that did not reach the disk are zeros, so an entry then lacks its beginning, its end, or both.
    """
    written = first.rstrip(b"\n").strip(b"\0")
    if not first.startswith(b"\0"):
        return written.startswith(BEGINNING) or BEGINNING.startswith(written)
    return not written or (written.endswith(b"}") and b"\0" not in written and written.isascii())
