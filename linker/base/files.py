"""Read and write the user's files: a file is written completely or not at all, and errors name it."""

from __future__ import annotations

import contextlib
import io
import json
import math
import mmap
import os
import stat
import sys
import time
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from linker.base.errors import InputError
from linker.base.printable import print_for_programs

if TYPE_CHECKING:
    import sqlite3

STDIO = Path("-")  # stdin for files to read, stdout for files to write
# Stdout is written to, never replaced: if it is redirected to a file, other programs may write there, too.
STDOUT = (STDIO, Path("/dev/stdout"))
MAX_JSON, MAX_TOKENIZER = 16 << 20, 256 << 20  # maximum size in bytes of a settings file, and of a tokenizer
MAX_NPY_HEAD = 1 << 14
STEPS = 100_000  # steps of SQLite's virtual machine between two clock checks: a few milliseconds


def real(path: Path) -> Path:
    """Return a path with its symbolic links resolved; a path in a loop of links is returned unchanged."""
    return Path(os.path.realpath(path))


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves either the old or the new file; on return, the new one is on disk.

    Pipes and devices are written directly. Raises InputError if the file cannot be written.
    """
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that, if the block ends without an error, is flushed to the disk and replaces `path`.

    Pipes and devices are written directly, and so is stdout (`-` or /dev/stdout), at the end of the block. Raises
    InputError if the file cannot be written, or is part of an index.
    """
    if path in STDOUT:
        held = io.BytesIO()
        yield held
        print_for_programs(held.getvalue())
        return
    # Imported here because it imports numpy, which would delay the start of every command.
    from indexes.disk.writing import sync
    from indexes.store.ownership import index_of

    target = path.resolve()  # keeps a symbolic link and replaces its target
    if index := index_of(target):
        raise InputError(f"{path} is a file of the index {index}: write elsewhere")
    try:
        direct = target.exists() and not target.is_file()
        temporary = target if direct else target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with target.open("wb") if direct else _new_file(temporary, target) as file:
                yield file
                if not direct:
                    file.flush()
                    os.fsync(file.fileno())
            if not direct:
                temporary.replace(target)
                sync(target.parent)
        finally:
            if not direct:
                temporary.unlink(missing_ok=True)
    except OSError as e:
        raise InputError(f"cannot write {target}: {e.strerror}") from e


def _new_file(path: Path, replaced: Path) -> IO[bytes]:
    """Open a new file with the mode of the file that it will replace, so that a private file stays private."""
    if not replaced.exists():
        return path.open("wb")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(descriptor, stat.S_IMODE(replaced.stat().st_mode))
    return os.fdopen(descriptor, "wb")


def check_outputs(outputs: Mapping[str, str | Path | None], inputs: Iterable[str | Path | None]) -> None:
    """Raise InputError if an output (`outputs`: option → file) cannot be written, or is an input or another output."""
    for option, name in outputs.items():
        if name is None or (path := Path(name)) in STDOUT:
            continue
        if path.is_dir():
            raise InputError(f"{option} {path} is a folder: name a file in it")
        if not path.parent.is_dir():
            raise InputError(f"{option} {path}: there is no folder {path.parent}: create it")
    check_distinct(outputs, inputs)


def check_distinct(outputs: Mapping[str, str | Path | None], inputs: Iterable[str | Path | None]) -> None:
    """Raise InputError if an option's file is also an input or another option's file."""
    used = {real(Path(path)): "an input, which would be lost" for path in inputs if path is not None}
    for option, name in outputs.items():
        if name is None or Path(name) in STDOUT:
            continue
        if (place := real(Path(name))) in used:
            raise InputError(f"{option} {name} is also {used[place]}: name another file")
        used[place] = f"the file of {option}"


def open_input(path: Path) -> BufferedReader:
    """Open a file that the user named: a regular file, a pipe (read once), a terminal, or stdin, under the name `-`.

    Raises InputError for any other device, whose data may never end, and the OSErrors of `open`.
    """
    if path == STDIO:
        # A copy of the descriptor, so that closing it leaves stdin open.
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
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


def map_bytes(path: Path) -> mmap.mmap | bytes:
    """Return the content of a user's file, mapped if possible. Raises InputError naming it and the reason."""
    try:
        with open_input(path) as file:
            state = os.fstat(file.fileno())
            if stat.S_ISREG(state.st_mode) and state.st_size:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return file.read()
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror or e}") from e


def npy_array(path: Path, content: mmap.mmap | bytes) -> Any:
    """Return the array of numbers in the content of a .npy file, without copying.

    The header is checked here, because numpy trusts the shape in it. Raises InputError if the file is damaged or
    contains anything but numbers.
    """
    import numpy as np  # imported here, so that commands start faster

    head = io.BytesIO(content[:MAX_NPY_HEAD])
    try:
        version = np.lib.format.read_magic(head)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise ValueError("it does not contain plain numbers")
        shape, is_fortran, dtype = readers[version](head)
        if dtype.kind not in "fiu":
            raise ValueError(f"it contains {'Python objects' if dtype.hasobject else dtype}, not numbers")
        count = math.prod(shape)
        if min(shape, default=0) < 0 or count > (len(content) - head.tell()) // dtype.itemsize:
            raise ValueError(f"it is shorter than the shape {shape} that it declares")
        array = np.frombuffer(content, dtype, count, head.tell()) if count else np.empty(0, dtype)
        return array.reshape(shape, order="F" if is_fortran else "C")
    # The header of a .npy file is a Python literal, so parsing it may raise any of these errors.
    except (ValueError, TypeError, OverflowError, SyntaxError, RecursionError, tokenize.TokenError) as e:
        raise InputError(
            f"cannot read {path} as a .npy matrix: {str(e)[:200]}; save its numbers again"
        ) from None


def path_text(path: Path) -> str:
    r"""Return a path as a string for JSON, in which bytes that are not UTF-8 are written as \xNN."""
    return os.fsencode(path).decode(errors="backslashreplace")


def read_regular(path: Path, limit: int) -> bytes:
    """Return the content of a regular file, without ever blocking. Raises InputError if it exceeds `limit` bytes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise InputError(f"{path} is not a regular file: replace it with the file that belongs there")
        if state.st_size > limit:
            raise InputError(
                f"{path} has {state.st_size:,} bytes, more than the {limit:,} allowed for such a file"
            )
        return file.read(limit)


def read_json(path: Path, limit: int = MAX_JSON) -> Any:
    """Return the value in a JSON file. Raises InputError if it is not JSON, and the errors of `read_regular`."""
    content = read_regular(path, limit)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as e:  # RecursionError: thousands of nested brackets
        raise InputError(f"{path} is damaged: {e}") from None


def nonempty_lines(path: Path) -> list[str]:
    """Return the non-empty lines of a text file, stripped. Raises InputError if it is unreadable or not UTF-8."""
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as e:
        raise InputError(f"{path} is not UTF-8 text (byte {e.start}): convert it first") from e
    return [stripped for line in lines if (stripped := line.strip())]


def limit_queries(connection: sqlite3.Connection, seconds: float, steps: int = STEPS) -> None:
    """Make SQLite stop a query that exceeds a time limit: a crafted file can make a query loop forever."""
    deadline = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > deadline, steps)
