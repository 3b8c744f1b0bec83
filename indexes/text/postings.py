"""Postings: how often each term occurs in which rows, in immutable segments.

A segment covers consecutive rows. Its terms are identified by their 64-bit xxh3 hashes, in ascending order (the
probability that two of ten million terms collide is three in a million). A term's postings are its rows, ascending,
each with a count of at most 65,535. A row's length is stored as a two-byte code: exact below 32,768, then rounded down
by less than a thousandth.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexes import kernels
from indexes.arrays import distinct
from indexes.disk.reading import check_length, mapping_of
from indexes.dtypes import AnyArray
from indexes.text import segment_files
from indexes.text.segment_files import Layout

SUFFIX = ".postings"
NAME = re.compile(rf"[0-9a-f]{{32}}\{SUFFIX}")
BLOCK = 4096  # number of rows in a block; the same as in postings.c, which reads lengths in whole blocks
MAGIC = b"postngs2"
MOST_COUNT = 65_535
MOST_TOKENS = 1 << 48  # maximum number of tokens of a segment in which a count is capped
CHUNK = 1 << 22  # postings copied at a time by a merge
# up to this many lookups or keys, a compiled function keeps the GIL, for tens of microseconds
BRIEF = 1 << 12
# The length that each code represents.
LENGTHS = np.concatenate(
    (np.arange(1 << 15), np.concatenate([np.arange(1024, 2048, dtype=np.int64) << e for e in range(5, 37)]))
)


@dataclass(frozen=True)
class PostingsSegment:
    """Postings of the rows `first` … `first + documents − 1`; in the arrays, rows count from 0.

    terms: uint64 [T], ascending. starts: int64 [T + 1]; term t has the postings starts[t] … starts[t + 1] − 1.
    rows: uint32 [P]. counts: uint16 [P]. lengths: uint16 [documents], codes (indexes into LENGTHS), padded to whole
    blocks. tokens: the total number of tokens.
    """

    first: int
    documents: int
    tokens: int
    terms: AnyArray
    starts: AnyArray
    rows: AnyArray
    counts: AnyArray
    lengths: AnyArray
    path: Path | None = None

    @property
    def size(self) -> int:
        """Number of postings."""
        return len(self.rows)

    @functools.cached_property
    def layout(self) -> AnyArray:
        """Addresses and sizes of the segment's arrays, as `Segment` in postings.c declares them, int64 [8]."""
        terms, starts, rows, counts, codes = (
            array.__array_interface__["data"][0]
            for array in (self.terms, self.starts, self.rows, self.counts, self.codes)
        )
        entries = (terms, starts, len(self.terms), rows, counts, codes, self.documents, self.first)
        return np.array(entries, dtype=np.int64)

    @functools.cached_property
    def codes(self) -> AnyArray:
        """A copy of `lengths`: a change to the mapped file cannot cause an access outside of a scorer's tables."""
        return np.array(self.lengths, dtype=np.uint16)

    @functools.cached_property
    def most(self) -> int:
        """The greatest of `codes`, 0 if there are none."""
        return int(self.codes.max(initial=0))


def from_tokens(first: int, tokens: AnyArray, lengths: AnyArray, hashes: AnyArray) -> PostingsSegment:
    """Return a segment of consecutive documents, the first of which is row `first`.

    `tokens` (int32 [sum of lengths]) has the documents' term ids, one document after the other, `lengths` (int64
    [documents]) the number of tokens per document, and `hashes` (uint64 [V]) the hash of each term, by its id.
    """
    terms, ranks = segment_files.ranks_of(tokens, hashes)
    library = kernels.load("postings")
    if library is None:
        starts, rows, counts = _by_sorting(ranks, lengths, len(terms))
    else:
        starts, working = np.empty((2, len(terms) + 1), dtype=np.int64)
        rows, counts = np.empty(len(ranks), dtype=np.uint32), np.empty(len(ranks), dtype=np.uint16)
        size = kernels.call(
            library.count, len(lengths), lengths, ranks, len(terms), working, starts, rows, counts
        )
        rows, counts = rows[:size].copy(), counts[:size].copy()
    return PostingsSegment(
        first, len(lengths), len(tokens), terms, starts, rows, counts, _pad(_codes(lengths))
    )


def _by_sorting(ranks: AnyArray, lengths: AnyArray, terms: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return where the postings of each term start, and the row and count of each posting."""
    keys = ranks.astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    keys.sort()
    edges = (
        np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        if len(keys)
        else np.empty(0, np.int64)
    )
    counts = np.minimum(np.diff(np.append(edges, len(keys))), MOST_COUNT).astype(np.uint16)
    unique = keys[edges]
    starts = np.searchsorted(unique >> np.uint64(32), np.arange(terms + 1, dtype=np.uint64))
    return starts.astype(np.int64), unique.astype(np.uint32), counts  # a row is the lower half of its key


def _codes(lengths: AnyArray) -> AnyArray:
    """Return, for each of `lengths`, the code of the greatest length in the table that does not exceed it."""
    return (np.searchsorted(LENGTHS, lengths, side="right") - 1).astype(np.uint16)


def _pad(lengths: AnyArray) -> AnyArray:
    return np.pad(lengths, (0, -len(lengths) % BLOCK))


def merged(segments: Sequence[PostingsSegment]) -> PostingsSegment:
    """Return one segment that holds the postings of consecutive segments."""
    terms = distinct(np.concatenate([s.terms for s in segments]))
    sizes = np.zeros(len(terms) + 1, dtype=np.int64)
    term_numbers = [np.searchsorted(terms, s.terms) for s in segments]
    for segment, numbers in zip(segments, term_numbers, strict=True):
        sizes[numbers + 1] += np.diff(segment.starts)
    starts = np.cumsum(sizes)
    rows, counts = np.empty(starts[-1], dtype=np.uint32), np.empty(starts[-1], dtype=np.uint16)
    free = starts[:-1].copy()  # where each term's next postings are written
    for segment, numbers in zip(segments, term_numbers, strict=True):
        _copy(segment, segment.first - segments[0].first, numbers, free, rows, counts)
    lengths = np.concatenate([s.lengths[: s.documents] for s in segments])
    return PostingsSegment(
        segments[0].first,
        len(lengths),
        sum(s.tokens for s in segments),
        terms,
        starts,
        rows,
        counts,
        _pad(lengths),
    )


def _copy(
    segment: PostingsSegment, shift: int, numbers: AnyArray, free: AnyArray, rows: AnyArray, counts: AnyArray
) -> None:
    """Copy postings to `rows` (plus `shift`) and `counts`; term t's go to free[numbers[t]], which then moves past them.

    This runs without the GIL, since searches continue while segments are merged.
    """
    library = kernels.load("postings")
    if library is None:
        _copy_by_numpy(segment, shift, numbers, free, rows, counts)
        return
    kernels.call(
        library.copy, len(numbers), numbers, segment.starts, segment.rows, segment.counts, shift, free, rows, counts
    )  # fmt: skip


def _copy_by_numpy(
    segment: PostingsSegment, shift: int, numbers: AnyArray, free: AnyArray, rows: AnyArray, counts: AnyArray
) -> None:
    for low, high in _chunks(segment.starts):
        here = slice(segment.starts[low], segment.starts[high])
        lengths_here = np.diff(segment.starts[low : high + 1])
        offset = free[numbers[low:high]] - segment.starts[low:high]
        target = np.repeat(offset, lengths_here) + np.arange(here.start, here.stop)
        rows[target] = segment.rows[here] + np.uint32(shift)
        counts[target] = segment.counts[here]
    free[numbers] += np.diff(segment.starts)


def _chunks(starts: AnyArray) -> Iterable[tuple[int, int]]:
    low = 0
    while low < len(starts) - 1:
        high = int(np.searchsorted(starts, starts[low] + CHUNK, side="right")) - 1
        high = max(high, low + 1)
        yield low, high
        low = high


def write(segment: PostingsSegment, folder: Path) -> PostingsSegment:
    """Write a segment to a file named by its checksum, and return it like `read`. Raises OSError, DamagedError."""
    numbers = (segment.first, segment.documents, segment.tokens, len(segment.terms), segment.size)
    return read(segment_files.write(segment, numbers, folder, SUFFIX, LAYOUT))


PARTS = {"terms": "<u8", "starts": "<i8", "rows": "<u4", "counts": "<u2", "lengths": "<u2"}
LAYOUT = Layout(MAGIC, PARTS)


def read(path: Path) -> PostingsSegment:
    """Map a file, check its whole content, and return the segment in it. Raises OSError, DamagedError."""

    def sizes(numbers: Sequence[int]) -> Sequence[int]:
        _, documents, _, terms, postings = numbers
        return terms, terms + 1, postings, postings, documents + -documents % BLOCK

    return segment_files.read(
        path,
        LAYOUT,
        sizes,
        lambda n, arrays: PostingsSegment(n[0], n[1], n[2], **arrays, path=path),
        lambda segment: _ordered(segment) and _counted(segment),
    )


def _ordered(segment: PostingsSegment) -> bool:
    """Return whether terms ascend, their postings are contiguous, and the rows of each term ascend and exist."""
    starts, terms, rows = segment.starts, segment.terms, segment.rows
    ends = starts[0] == 0 and starts[-1] == segment.size
    if not ends or (starts[1:] <= starts[:-1]).any() or (terms[1:] <= terms[:-1]).any():
        return False
    for begin in range(0, segment.size, CHUNK):
        part = rows[begin : begin + CHUNK + 1]  # one more, to include the first row of the next part
        low, high = np.searchsorted(starts, [begin + 1, begin + len(part)]).tolist()
        later = part[1:] > part[:-1]
        later[starts[low:high] - begin - 1] = True  # a term's first row may be any row
        if not later.all() or part.max() >= segment.documents:
            return False
    return True


def _counted(segment: PostingsSegment) -> bool:
    """Return whether all counts are at least 1 and add up to the header's tokens (or to less, if one is capped)."""
    total, most = 0, 0
    for begin in range(0, segment.size, CHUNK):
        part = segment.counts[begin : begin + CHUNK]
        if not part.all():
            return False
        total, most = total + int(part.sum(dtype=np.int64)), max(most, int(part.max()))
    return total == segment.tokens or (most == MOST_COUNT and total < segment.tokens <= MOST_TOKENS)


def read_folder(folder: Path, known: Mapping[str, PostingsSegment] | None = None) -> list[PostingsSegment]:
    """Return a folder's segments in row order; see `segment_files.read_folder`. Raises DamagedError, OSError."""
    return segment_files.read_folder(folder, NAME, read, "the postings of row {row}", known)


def find(segments: Sequence[PostingsSegment], hashes: AnyArray, layouts: AnyArray | None = None) -> AnyArray:
    """Return int64 [n, 3, terms]: per segment, where each term's postings begin and end, and working space.

    Begin and end are equal if the segment lacks the term. `layouts`: those of the n segments, int64 [n, 8], if known.
    """
    library = kernels.load("postings", len(segments) * len(hashes) <= BRIEF)
    places = np.zeros((len(segments), 3, len(hashes)), dtype=np.int64)
    if library is None or not len(segments):
        for number, segment in enumerate(segments):
            places[number] = _find_by_numpy(segment, hashes)
        return places
    laid = np.stack([segment.layout for segment in segments]) if layouts is None else layouts
    kernels.call(library.find, len(segments), laid, hashes, len(hashes), places)
    return places


def frequencies(places: AnyArray) -> AnyArray:
    """Return how many rows have each term, by the places of its postings (see `find`), int64 [terms]."""
    return np.asarray((places[:, 1] - places[:, 0]).sum(axis=0))


def _find_by_numpy(segment: PostingsSegment, hashes: AnyArray) -> AnyArray:
    places = np.zeros((3, len(hashes)), dtype=np.int64)
    if len(segment.terms):
        term = np.minimum(np.searchsorted(segment.terms, hashes), len(segment.terms) - 1)
        matches = segment.terms[term] == hashes
        np.multiply(segment.starts[term], matches, out=places[0])
        np.multiply(segment.starts[term + 1], matches, out=places[1])
    return places


def check_lengths(segments: Sequence[PostingsSegment]) -> None:
    """Raise DamagedError if the file of a segment has become shorter since it was mapped."""
    for segment in segments:
        check_length(mapping_of(segment.lengths), segment.path)
