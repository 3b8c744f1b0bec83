"""Small files of the user's: written whole or not at all, read with errors that name the line."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection
from io import BufferedReader
from pathlib import Path
from typing import Any

from linker.errors import InputError


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one; pipes and devices are written directly."""
    path = path.resolve()  # a link stays one; /dev/stdout becomes what it stands for
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as e:
        raise InputError(f"cannot write {path}: {e.strerror}") from e


def open_input(path: Path) -> BufferedReader:
    """Open a file that the user named: a regular one, a pipe (read once) or a terminal.

    Raises InputError for any other device, whose data may never end; OSError as `open` does.
    """
    mode = path.stat().st_mode
    refusal = InputError(f"{path} is a device or socket, not a file: save its data to a file and name that")
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise refusal
    file = path.open("rb")
    if stat.S_ISCHR(mode) and not file.isatty():
        file.close()
        raise refusal
    return file


def read_bytes(path: Path) -> bytes:
    """Return the content of a file that the user named. Raises InputError naming it and the reason."""
    try:
        with open_input(path) as file:
            return file.read()
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}") from e


def path_text(path: Path) -> str:
    r"""Return a path as text that JSON can hold: bytes that are no UTF-8 are shown as \xNN."""
    return os.fsencode(path).decode(errors="backslashreplace")


def read_lines(path: Path) -> list[str]:
    """Return the non-empty lines of a text file, stripped."""
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as e:
        raise InputError(f"{path} is not UTF-8 text (byte {e.start}): convert it first") from e
    return [stripped for line in lines if (stripped := line.strip())]


def read_settings(path: Path, formats: Collection[str], maker: str) -> dict[str, Any]:
    """Read a model's settings, whose "format" must be one of `formats`; `maker` is the command that writes such models.

    Raises InputError where the file is missing, damaged or of another format.
    """
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}; name a folder that `{maker}` wrote") from e
    except (ValueError, RecursionError) as e:
        raise InputError(f"{path} is damaged: {e}") from None
    found = settings.get("format") if isinstance(settings, dict) else None
    if found not in formats:
        raise InputError(
            f"{path} has the format {found!r}; `{maker}` of this version writes {', '.join(formats)}"
        )
    return dict(settings)
