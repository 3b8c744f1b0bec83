"""Small files of the user's: written whole or not at all, read with errors that name the line."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from linker.errors import InputError


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, and afterwards the new one is on the disk.

    Pipes and devices are written directly.
    """
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
            sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as e:
        raise InputError(f"cannot write {path}: {e.strerror}") from e


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk: until then a power loss may undo a creation or a renaming."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_lines(path: Path) -> list[str]:
    """Return the non-empty lines of a text file, stripped."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror}") from e
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
    except ValueError as e:
        raise InputError(f"{path} is damaged: {e}") from None
    found = settings.get("format") if isinstance(settings, dict) else None
    if found not in formats:
        raise InputError(
            f"{path} has the format {found!r}; `{maker}` of this version writes {', '.join(formats)}"
        )
    return dict(settings)
