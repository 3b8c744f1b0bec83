"""The file of a map: its documents and their coordinates."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from linker.base.errors import InputError
from linker.base.files import read_bytes, write_atomically

MOST = 20_000  # maximum number of documents on a map; if there are more, a random sample is shown
LEAST = 5  # minimum number of documents
EDGE = 65_535  # largest coordinate (uint16)

Points = npt.NDArray[np.uint16]  # [n, 2]


def save(path: Path, ids: list[str], points: Points, generation: int) -> None:
    """Write a map: a line of JSON with ids and generation, then the coordinates, little-endian uint16 [n, 2]."""
    head = orjson.dumps({"ids": ids, "generation": generation}) + b"\n"
    write_atomically(path, head + points.astype("<u2").tobytes())


def load(path: Path) -> tuple[list[str], bytes, int]:
    """Return ids, coordinates (see `save`) and the generation of a map. Raises InputError if it is damaged."""
    head, _, points = read_bytes(path).partition(b"\n")
    try:
        about = orjson.loads(head)
        ids, generation = about["ids"], about["generation"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise InputError(f"{path} is not a map: delete it, and draw the map again") from None
    if len(points) != 4 * len(ids):
        raise InputError(f"{path} is truncated: delete it, and draw the map again")
    return ids, points, generation


def places(coordinates: bytes) -> Points:
    """Return the coordinates of a map as an array [n, 2]."""
    return np.frombuffer(coordinates, "<u2").reshape(-1, 2)
