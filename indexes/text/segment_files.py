"""Files of segments (consecutive rows): a header and arrays, named by checksum. They are merged, never changed."""

import contextlib
import copy
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import xxhash

from indexes import carrying
from indexes.disk.reading import REMEDY, give_back, map_file
from indexes.disk.writing import link_or_copy, record_of
from indexes.dtypes import AnyArray
from indexes.interface import DamagedError

HEAD = 64  # bytes
NUMBERS = 5  # number of unsigned integers after the magic number


class RowSegment(Protocol):
    """The interface of a segment."""

    @property
    def first(self) -> int:
        """The row number of the segment's first document."""

    @property
    def documents(self) -> int:
        """The number of documents in the segment."""

    @property
    def size(self) -> int:
        """The size by which carrying.py decides when segments are merged."""

    @property
    def path(self) -> Path | None:
        """Its file, if it has one."""


S = TypeVar("S", bound=RowSegment)


@dataclass(frozen=True, slots=True)
class Layout:
    """A file format: its magic number (the first eight bytes), and the arrays after the header, by name and dtype."""

    magic: bytes
    parts: Mapping[str, str]


def write(segment: RowSegment, numbers: Sequence[int], folder: Path, suffix: str, layout: Layout) -> Path:
    """Write header `numbers` [NUMBERS] and arrays to a file named by its checksum; return its path. Raises OSError."""
    head = layout.magic + np.array(numbers, dtype="<u8").tobytes()
    arrays = [
        np.ascontiguousarray(getattr(segment, name), dtype=kind).data for name, kind in layout.parts.items()
    ]
    digest, temporary = xxhash.xxh3_128(), folder / f"{suffix.removeprefix('.')}.tmp"
    with temporary.open("wb", buffering=1 << 20) as file:
        parts: list[bytes | memoryview] = [head.ljust(HEAD, b"\0"), *arrays]
        for part in parts:
            file.write(part)
            digest.update(part)
    path = folder / f"{digest.hexdigest()}{suffix}"
    temporary.replace(path)
    return path


def read(
    path: Path,
    layout: Layout,
    sizes: Callable[[Sequence[int]], Sequence[int]],
    make: Callable[[Sequence[int], Mapping[str, Any]], S],
    sound: Callable[[S], bool],
) -> S:
    """Return the segment in a file, mapped and checked.

    `sizes` returns the length of each array, given the header's numbers; `make` returns the segment, given these
    numbers and the arrays; `sound` returns whether its content is consistent. Raises OSError, DamagedError.
    """
    data = map_file(path)
    damaged = DamagedError(f"{path} is damaged or incomplete: restore it, or rebuild the index")
    if len(data) < HEAD or data[: len(layout.magic)] != layout.magic:
        raise damaged
    numbers = np.frombuffer(data, "<u8", NUMBERS, len(layout.magic)).tolist()
    kinds = [np.dtype(kind) for kind in layout.parts.values()]
    counts = sizes(numbers)
    edges = list(
        itertools.accumulate((n * kind.itemsize for n, kind in zip(counts, kinds, strict=True)), initial=HEAD)
    )
    if len(data) != edges[-1]:
        raise damaged
    arrays = {
        name: np.frombuffer(data, kind, n, edge)
        for name, kind, n, edge in zip(layout.parts, kinds, counts, edges, strict=False)
    }
    segment = make(numbers, arrays)
    if not sound(segment):
        raise damaged
    give_back(data)
    return segment


def read_folder(
    folder: Path,
    ours: re.Pattern[str],
    load: Callable[[Path], S],
    what: str,
    known: Mapping[str, S] | None = None,
) -> list[S]:
    """Return a folder's segments in row order.

    `what` describes, for the error message, what is missing if there is no segment with row "{row}". Segments in
    `known`, by file name, are already open and are not read again. Raises DamagedError, and FileNotFoundError if the
    folder does not exist.
    """

    def opened(path: Path) -> S:
        segment = (known or {}).get(path.name)
        return at(segment, path) if segment is not None else load(path)

    paths = [path for path in folder.iterdir() if ours.fullmatch(path.name)]
    segments = sorted(map(opened, paths), key=lambda segment: segment.first)
    row = 0
    for segment in segments:
        if segment.first != row:
            raise DamagedError(f"{folder} lacks {what.format(row=row)}: restore them, or rebuild the index")
        row += segment.documents
    return segments


def at(segment: S, path: Path) -> S:
    """Return a copy of an open segment, with its cached properties, for another file with the same content."""
    other = copy.copy(segment)
    object.__setattr__(other, "path", path)  # segments are frozen
    return other


def ranks_of(tokens: AnyArray, hashes: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the hashes of the terms that occur, uint64 [V] ascending, and each token's rank among them, uint32 [T].

    `tokens` (int32 [T]) are numbers of terms, and `hashes` (uint64) has the hash of each number.
    """
    used = np.zeros(len(hashes), dtype=bool)
    used[tokens] = True
    numbers = np.flatnonzero(used)
    terms, inverse = np.unique(hashes[numbers], return_inverse=True)
    rank = np.zeros(len(hashes), dtype=np.uint32)
    rank[numbers] = inverse
    return terms, rank[tokens]


def grow(
    segments: Sequence[S],
    new: S,
    limits: carrying.MergeLimits,
    folder: Path | None,
    merged: Callable[[Sequence[S]], S],
    write: Callable[[S, Path], S],
    *,
    building: bool,
) -> list[S]:
    """Return the segments after `new` has absorbed the last ones (see carrying.py), whose files it then replaces.

    It is written to `folder`, if there is one. Raises DamagedError if a file has changed, OSError.
    """
    count = carrying.left_alone([s.size for s in segments], new.size, limits, building=building)
    absorbed = segments[count:]
    check_content(absorbed)
    segment = merged([*absorbed, new]) if absorbed else new
    if folder is not None:
        segment = write(segment, folder)
    unlink(absorbed, segment)
    return [*segments[:count], segment]


def check_content(segments: Sequence[RowSegment]) -> None:
    """Raise DamagedError if the content of a segment's file has changed; a file that no longer exists is ignored."""
    for segment in segments:
        with contextlib.suppress(FileNotFoundError):
            if segment.path is not None and record_of(segment.path).xxh3 != segment.path.stem:
                raise DamagedError(f"{segment.path}: content does not match its checksum: {REMEDY}")


def unlink(merged: Sequence[RowSegment], into: RowSegment) -> None:
    """Delete the files of segments that were merged; a process that has mapped one keeps it."""
    for old in merged:
        if old.path is not None and old.path != into.path:
            old.path.unlink(missing_ok=True)


def link(segment: S, folder: Path) -> S:
    """Link or copy a segment's file into a folder, and return the segment there. Raises OSError."""
    assert segment.path is not None
    path = folder / segment.path.name
    link_or_copy(segment.path, path)
    return at(segment, path)
