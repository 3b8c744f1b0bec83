"""HNSW graphs in FAISS's format with a wrong structure, as an attacker would make them."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt


def crafted(graph: bytes) -> Iterator[bytes]:
    """Yield graphs with correct sizes but a wrong structure, which made FAISS access memory out of bounds."""
    places = _places(graph)
    levels, links = (_view(graph, places[name]) for name in ("levels", "neighbours"))
    offsets = _view(graph, places["offsets"], "<i8")
    high, low = int(np.argmax(levels)), int(np.argmin(levels))
    first, last = places["neighbours"][0], len(levels) - 1  # other memory follows the last node's links
    tail = first + 4 * places["neighbours"][1]
    for entry in (low, -1, -2, len(levels), (1 << 31) - 1):  # the entry point
        yield _with(graph, tail, [entry])
    for top in {0, -1, 1, 5, 6, 7, 1000, (1 << 31) - 1} - {int(levels[high]) - 1}:  # the top level
        yield _with(graph, tail + 4, [top])
    for entry, top in itertools.product((low, last), (1, 2, 3, 4, 5)):
        yield _with(graph, tail, [entry, top])
    yield _with(graph, first, np.where(links >= 0, last, links))
    for node in np.flatnonzero(levels > 1).tolist():  # its upper levels link the last node
        linked = np.array(links)
        linked[offsets[node] + 64 : offsets[node + 1]] = last
        yield _with(graph, first, linked)
    upper = offsets[high] + 64  # where its links on level 1 begin
    for node in (low, len(levels), -2, (1 << 31) - 1):
        yield _with(graph, first + 4 * int(upper), [node])
        yield _with(graph, first + 4 * int(offsets[low]), [-node - 3])
    for node, level in itertools.product((high, low), (-1, 0, 6, 7, 100, (1 << 31) - 1)):
        yield _with(graph, places["levels"][0] + 4 * node, [level])
    for node, offset in itertools.product((0, 1, len(levels)), (-1, 1, len(links) + 1, 1 << 40)):
        yield _with(graph, places["offsets"][0] + 8 * node, [offset], "<i8")
    for level, end in itertools.product((0, 1, 2), (-1, 1, 65, 1 << 20)):
        yield _with(graph, places["ends"][0] + 4 * level, [end])
    swapped = np.array(levels)  # two nodes change their levels; the entry point follows, or does not
    swapped[[high, low]] = swapped[[low, high]]
    moved = np.concatenate([[0], np.cumsum(_view(graph, places["ends"])[swapped])])
    both = _with(_with(graph, places["levels"][0], swapped), places["offsets"][0], moved, "<i8")
    yield from (both, _with(both, tail, [low]))


def _places(graph: bytes) -> dict[str, tuple[int, int]]:
    """Return where the vectors in a graph's file begin, and their length."""
    at, places = 37, {}
    for name, size in (("chances", 8), ("ends", 4), ("levels", 4), ("offsets", 8), ("neighbours", 4)):
        count = int.from_bytes(graph[at : at + 8], "little")
        places[name] = at + 8, count
        at += 8 + size * count
    return places


def _view(graph: bytes, place: tuple[int, int], kind: str = "<i4") -> npt.NDArray[Any]:
    return np.frombuffer(graph, kind, place[1], place[0])


def _with(graph: bytes, at: int, values: object, kind: str = "<i4") -> bytes:
    new = np.asarray(values).astype(kind).tobytes()
    return graph[:at] + new + graph[at + len(new) :]
