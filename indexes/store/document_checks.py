"""Reads a segment's offsets, ids and documents as untrusted data, and raises DamagedError where they do not fit."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from indexes.disk.reading import REMEDY
from indexes.interface import DamagedError, Document

TYPES = {"id": str, "text": str, "title": str, "metadata": dict}
NESTED = 200  # a line with fewer opening brackets cannot be nested too deeply


def read_offsets(path: Path, rows: int, size: int) -> npt.NDArray[np.int64]:
    """Return where each document begins and the last one ends: int64 [rows + 1], offsets into `size` bytes.

    Raises DamagedError.
    """
    offsets = np.fromfile(path, dtype="<i8")
    if len(offsets) != rows + 1 or offsets[0] or offsets[-1] != size or (offsets[1:] <= offsets[:-1]).any():
        raise DamagedError(f"{path} does not divide {size} bytes into {rows} documents: {REMEDY}")
    return offsets


def read_ids(path: Path, rows: int) -> list[str]:
    """Return the ids in a file. Raises DamagedError unless there are exactly `rows` valid ones."""
    try:
        ids = path.read_bytes().decode("utf-8").split("\n")
    except UnicodeDecodeError as e:
        raise DamagedError(f"{path} is not UTF-8 ({e}): {REMEDY}") from None
    if len(ids) != rows or not all(ids) or not _may_be_ids("".join(ids)):
        raise DamagedError(f"{path} does not hold {rows} ids: {REMEDY}")
    return ids


def _may_be_ids(text: str) -> bool:
    """Apply the rules of `check_id` to many ids joined; characters newer than this Python's Unicode tables pass."""
    return " " not in text and (
        text.isprintable() or all(c.isprintable() or unicodedata.category(c) == "Cn" for c in set(text))
    )


def read_document(line: bytes, id_: str, path: Path | str) -> Document:
    """Return the document in a line of `path`.

    Raises DamagedError unless it has the id `id_` and the right fields of the right types.
    """
    try:
        values = orjson.loads(line)
        if line.count(b"[") + line.count(b"{") > NESTED:
            # This refuses values that are nested too deeply, which are therefore never written.
            orjson.dumps(values)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as e:
        raise DamagedError(f"{path}: the document {id_!r} cannot be read as JSON ({e}): {REMEDY}") from None
    if type(values) is not dict or {n: type(v) for n, v in values.items()} != TYPES or values["id"] != id_:
        raise DamagedError(f"{path} does not hold the document {id_!r} where its offset points: {REMEDY}")
    return Document(**values)
