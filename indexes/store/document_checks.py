"""Reading a segment's offsets, ids and documents as data from elsewhere: what does not fit is DamagedError."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from indexes.disk.reading import REMEDY
from indexes.interface import DamagedError, Document

TYPES = {"id": str, "text": str, "title": str, "metadata": dict}
NESTED = 200  # brackets in a line, below which no nesting can be too deep


def read_offsets(path: Path, rows: int, size: int) -> npt.NDArray[np.int64]:
    """Return where each of `rows` documents begins in a file of `size` bytes, and where the last one ends."""
    offsets = np.fromfile(path, dtype="<i8")
    if len(offsets) != rows + 1 or offsets[0] or offsets[-1] != size or (offsets[1:] <= offsets[:-1]).any():
        raise DamagedError(f"{path} does not cut {size} bytes of documents into {rows}: {REMEDY}")
    return offsets


def read_ids(path: Path, rows: int) -> list[str]:
    """Return the ids in a file, which must be `rows`."""
    try:
        ids = path.read_bytes().decode("utf-8").split("\n")
    except UnicodeDecodeError as e:
        raise DamagedError(f"{path} is not UTF-8 ({e}): {REMEDY}") from None
    if len(ids) != rows or not all(ids) or not _may_be_ids("".join(ids)):
        raise DamagedError(f"{path} does not hold {rows} ids: {REMEDY}")
    return ids


def _may_be_ids(text: str) -> bool:
    """Do as check_id for many ids joined; characters that are newer than this Python's Unicode pass."""
    return " " not in text and (
        text.isprintable() or all(c.isprintable() or unicodedata.category(c) == "Cn" for c in set(text))
    )


def read_document(line: bytes, id_: str, path: Path) -> Document:
    """Return the document in a line of `path`, which must be the one of the id, with fields of the right types."""
    try:
        values = orjson.loads(line)
        if line.count(b"[") + line.count(b"{") > NESTED:
            orjson.dumps(values)  # refuses what is nested too deeply, which is therefore never written
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as e:
        raise DamagedError(f"{path}: the document {id_!r} is no JSON of ours ({e}): {REMEDY}") from None
    if type(values) is not dict or {n: type(v) for n, v in values.items()} != TYPES or values["id"] != id_:
        raise DamagedError(f"{path} does not hold the document {id_!r} where it should: {REMEDY}")
    return Document(**values)
