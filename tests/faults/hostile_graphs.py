"""FAISS files of the three kinds, modified as by an attacker."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

WORDS = (0, 1, -1, -2, 3, 31, 32, 1399, 1400, 1500, 1 << 16, 1 << 20, (1 << 31) - 1)
LONG = (0, 1, 2, 1399, 1400, 1401, 1 << 20, 1 << 31, 1 << 40, 1 << 61, 1 << 63, (1 << 64) - 1)


def damaged_graphs(sound: Mapping[str, bytes], rng: random.Random) -> Iterator[tuple[str, str, bytes]]:
    """Yield the change, the kind and the file's bytes, endlessly; the crafted graphs come first."""
    for what, data in crafted(sound["hnsw"]):
        yield what, "hnsw", data
    for number, kind in enumerate(itertools.cycle(sound)):
        what, data = _changed(sound[kind], rng, reach=300 if number % 2 else len(sound[kind]))
        yield what, kind, data


def _changed(sound: bytes, rng: random.Random, reach: int) -> tuple[str, bytes]:
    """Flip a bit or overwrite a word, near the start, anywhere or near the end; or truncate or extend the file."""
    data, at = bytearray(sound), rng.randrange(min(reach, len(sound) - 8))
    if rng.random() < 0.2:
        at = len(sound) - 8 - rng.randrange(64)
    way = rng.randrange(6)
    if way < 2:
        data[at] ^= 1 << rng.randrange(8)
    elif way == 2:
        data[at : at + 4] = (rng.choice(WORDS) & 0xFFFFFFFF).to_bytes(4, "little")
    elif way == 3:
        data[at : at + 8] = rng.choice(LONG).to_bytes(8, "little")
    elif way == 4:
        del data[at : at + rng.choice((1, 4, 8, len(data)))]
    else:
        data[at:at] = bytes(rng.choice((1, 4, 8)))
    return f"way {way} at {at}", bytes(data)


def crafted(graph: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield graphs with correct sizes but a wrong structure, which made FAISS access memory out of bounds."""
    places = _places(graph)
    levels, links = (_view(graph, places[name]) for name in ("levels", "neighbours"))
    offsets = _view(graph, places["offsets"], "<i8")
    high, low = int(np.argmax(levels)), int(np.argmin(levels))
    tail = places["neighbours"][0] + 4 * places["neighbours"][1]
    for entry in (low, -1, -2, len(levels), (1 << 31) - 1):
        yield f"the entry point is {entry}", _with(graph, tail, [entry])
    for top in (0, -1, 1, 5, 6, 7, 1000, (1 << 31) - 1):
        if top != levels[high] - 1:
            yield f"the top level is {top}", _with(graph, tail + 4, [top])
    last = len(levels) - 1  # other memory follows its links
    for entry, top in itertools.product((low, last), (1, 2, 3, 4, 5)):
        yield f"the entry point is {entry} on level {top}", _with(graph, tail, [entry, top])
    linked = np.where(links >= 0, last, links)
    yield "everything links the last node", _with(graph, places["neighbours"][0], linked)
    for node in np.flatnonzero(levels > 1).tolist():
        linked = np.array(links)
        linked[offsets[node] + 64 : offsets[node + 1]] = last
        yield (
            f"node {node} links the last node on its upper levels",
            _with(graph, places["neighbours"][0], linked),
        )
    upper = offsets[high] + 64  # where its links on level 1 begin
    for node in (low, len(levels), -2, (1 << 31) - 1):
        yield f"level 1 links {node}", _with(graph, places["neighbours"][0] + 4 * int(upper), [node])
        yield (
            f"level 0 links {node}",
            _with(graph, places["neighbours"][0] + 4 * int(offsets[low]), [-node - 3]),
        )
    for node, level in itertools.product((high, low), (-1, 0, 6, 7, 100, (1 << 31) - 1)):
        yield f"node {node} is of {level} levels", _with(graph, places["levels"][0] + 4 * node, [level])
    for node, offset in itertools.product((0, 1, len(levels)), (-1, 1, len(links) + 1, 1 << 40)):
        yield f"offset {node} is {offset}", _with(graph, places["offsets"][0] + 8 * node, [offset], "<i8")
    for level, end in itertools.product((0, 1, 2), (-1, 1, 65, 1 << 20)):
        yield f"level {level} ends at {end}", _with(graph, places["ends"][0] + 4 * level, [end])
    swapped = np.array(levels)
    swapped[[high, low]] = swapped[[low, high]]
    moved = np.concatenate([[0], np.cumsum(_view(graph, places["ends"])[swapped])])
    both = _with(graph, places["levels"][0], swapped)
    yield "two nodes change their levels", _with(both, places["offsets"][0], moved, "<i8")
    yield (
        "the same, and the entry point follows",
        _with(_with(both, places["offsets"][0], moved, "<i8"), tail, [low]),
    )


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
