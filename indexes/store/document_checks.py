"""Reads a segment's offsets, ids and documents as untrusted data, and raises DamagedError if they are wrong."""

import unicodedata
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from indexes.disk.reading import REMEDY
from indexes.interface import DamagedError, Document
from indexes.packed import PackedIds

TYPES = {"id": str, "text": str, "title": str, "metadata": dict}
# the first ASCII character of an id, and the last one of all, which is not printable
FIRST, DELETE = np.uint8(ord("!")), np.uint8(0x7F)
NESTED = 200  # a line with fewer opening brackets cannot be nested too deeply


def read_offsets(path: Path, rows: int, size: int) -> npt.NDArray[np.int64]:
    """Return where each document begins in `size` bytes, and where the last ends: int64 [rows + 1], or DamagedError."""
    offsets = np.fromfile(path, dtype="<i8")
    if len(offsets) != rows + 1 or offsets[0] or offsets[-1] != size or (offsets[1:] <= offsets[:-1]).any():
        raise DamagedError(f"the offsets in {path} do not match {rows} documents in {size} bytes: {REMEDY}")
    return offsets


def read_ids(path: Path, rows: int) -> PackedIds:
    """Return the ids in a file. Raises DamagedError unless there are exactly `rows` valid ones."""
    data = path.read_bytes()
    ids = PackedIds.of_lines(data)
    if len(ids) != rows or not ids.all_filled() or not _may_be_ids(data, path):
        raise DamagedError(f"{path} does not contain {rows} valid ids: {REMEDY}")
    return ids


def _may_be_ids(data: bytes, path: Path) -> bool:
    """Check lines of ids by the rules of `check_id`, but accept characters newer than Python's Unicode tables."""
    if data.isascii():
        # bytes below "!" wrap around to the greatest
        others = np.frombuffer(data, dtype=np.uint8) - FIRST >= DELETE - FIRST
        return int(np.count_nonzero(others)) == data.count(b"\n")
    try:
        text = data.decode("utf-8").replace("\n", "")
    except UnicodeDecodeError as e:
        raise DamagedError(f"{path} is not UTF-8 ({e}): {REMEDY}") from None
    return " " not in text and (
        text.isprintable() or all(c.isprintable() or unicodedata.category(c) == "Cn" for c in set(text))
    )


def read_document(line: bytes, id_: str, path: Path | str) -> Document:
    """Return the document in a line of `path`. Raises DamagedError unless its id is `id_` and its types are correct."""
    try:
        values = orjson.loads(line)
        if line.count(b"[") + line.count(b"{") > NESTED:
            # This rejects values that are nested too deeply, so they are never written.
            orjson.dumps(values)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as e:
        raise DamagedError(f"{path}: the document {id_!r} cannot be read as JSON ({e}): {REMEDY}") from None
    if type(values) is not dict or {n: type(v) for n, v in values.items()} != TYPES or values["id"] != id_:
        raise DamagedError(f"{path} does not contain the document {id_!r} at its offset: {REMEDY}")
    return Document(**values)
