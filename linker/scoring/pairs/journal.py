"""Append-only files of JSON lines that store the results of slow work, so that a killed run can continue."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from linker.base.errors import InputError
from linker.base.files import read_bytes

Take = Callable[[Any], None]
BEGIN = b'{"'  # the beginning of every entry


class Journal:
    """A file of entries, each a JSON object on its own line; without a path, nothing is stored."""

    def __init__(self, path: Path | None, what: str, take: Take) -> None:
        """Pass every entry of the file, if it exists, to `take`; `what` names the entries in errors ("entities").

        An entry for which `take` raises LookupError, TypeError, ValueError or AttributeError is damaged: it is
        skipped, and recomputed when needed. A last line truncated by a crash is removed. Raises InputError, without
        changing the file, if it cannot be used or holds something else.
        """
        self._path, self._what = path, what
        if path is not None and path.exists():
            self._read(path, take)

    def _read(self, path: Path, take: Take) -> None:
        data = read_bytes(path)
        whole = data.rfind(b"\n") + 1
        good = sum(_take(line, take) for line in data[:whole].splitlines())
        last = data[whole:]
        complete = bool(last) and _take(last, take)
        if data.strip() and not good + complete and not _cut_off(data):
            raise InputError(f"{path} holds no {self._what}: name another file for them")
        try:
            if complete:  # only the line end of the last line is missing
                _append(path, b"\n")
            elif last:
                os.truncate(path, whole)
        except OSError as e:
            raise InputError(f"cannot use the {self._what} file {path}: {e.strerror}") from e

    def add(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Append entries in one write, so that a kill loses at most these. Raises InputError if that fails."""
        if self._path is None:
            return
        lines = b"".join(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE) for entry in entries)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            _append(self._path, lines)
        except OSError as e:
            raise InputError(f"cannot write the {self._what} file {self._path}: {e.strerror}") from e


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def _take(line: bytes, take: Take) -> bool:
    try:
        take(orjson.loads(line))
    except (LookupError, TypeError, ValueError, AttributeError):  # orjson's error is a ValueError
        return False
    return True


def _cut_off(data: bytes) -> bool:
    """Return whether a file is the beginning of a first entry, as left by a crash during its write."""
    if b"\n" in data or not BEGIN.startswith(data[: len(BEGIN)]):
        return False
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return True
    return False
