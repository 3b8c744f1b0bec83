"""The forward index: each row's terms in order, and its sentence offsets, in immutable files.

A segment covers consecutive rows and identifies terms by their rank in its own table, so it needs no postings: an index
whose BM25 is on a server can have a forward index, too. A learned ranker reads its candidates' terms from it.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexes.arrays import distinct
from indexes.disk.reading import check_length, mapping_of
from indexes.dtypes import AnyArray, Int32Array, Int64Array
from indexes.text import segment_files
from indexes.text.segment_files import Layout
from indexes.text.vocabulary import TermVocabulary

SUFFIX = ".forward"
NAME = re.compile(rf"[0-9a-f]{{32}}\{SUFFIX}")
MAGIC = b"forward1"
CHUNK = 1 << 22  # tokens checked at a time
ROWS = 1 << 12  # rows whose terms are counted at a time
PARTS = {
    "hashes": "<u8",
    "offsets": "<i8",
    "sentence_offsets": "<i8",
    "frequencies": "<u4",
    "sentences": "<u4",
    "tokens": "<u4",
}
LAYOUT = Layout(MAGIC, PARTS)
# A sentence ends at a full stop (or the like) before a space, or at the end of a line; CJK punctuation needs no space.
END = re.compile(r"[.!?…]['\"”’)\]]*\s+|[。！？]|\n+")


@dataclass(frozen=True)
class ForwardSegment:
    """The ordered terms of the rows `first` … `first + documents − 1`.

    hashes: uint64 [V], of the terms, ascending; frequencies: uint32 [V], how many rows have each term. tokens: uint32
    [T], ranks of terms; offsets: int64 [documents + 1]; row r has the tokens offsets[r] … offsets[r + 1] − 1.
    sentences: uint32 [S], the start of each, counted from the row's first token, ascending from 0; sentence_offsets:
    int64 [documents + 1], as `offsets`.
    """

    first: int
    documents: int
    hashes: AnyArray
    offsets: AnyArray
    sentence_offsets: AnyArray
    frequencies: AnyArray
    sentences: AnyArray
    tokens: AnyArray
    path: Path | None = None

    @property
    def size(self) -> int:
        """Number of tokens."""
        return len(self.tokens)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, split by a simple rule; joined, they equal the text."""
    ends = [0, *(match.end() for match in END.finditer(text)), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(ends) if b > a]


def numbered(
    vocabulary: TermVocabulary, texts: Sequence[str]
) -> tuple[Int32Array, Int64Array, Int64Array, Int64Array]:
    """Return term ids [tokens], and the numbers of tokens per text, tokens per sentence and sentences per text.

    The first two are what `TermVocabulary.numbers` returns for the texts. Sentences without terms are left out.
    """
    cut = [sentences(text) for text in texts]
    tokens, lengths = vocabulary.numbers([sentence for part in cut for sentence in part])
    text_of = np.repeat(np.arange(len(texts)), [len(part) for part in cut])
    per_text = np.bincount(text_of, lengths, minlength=len(texts)).astype(np.int64)
    used = lengths > 0
    return tokens, per_text, lengths[used], np.bincount(text_of[used], minlength=len(texts)).astype(np.int64)


def from_tokens(
    first: int,
    tokens: AnyArray,
    lengths: AnyArray,
    sentence_lengths: AnyArray,
    counts: AnyArray,
    hashes: AnyArray,
) -> ForwardSegment:
    """Return a segment of consecutive documents, the first of which is row `first`.

    `tokens` (int32 [T]) has the documents' term ids, one document after the other; `lengths` and `counts` (int64
    [documents]) are the numbers of tokens and sentences per document, `sentence_lengths` (int64 [S]) the number of
    tokens per sentence, and `hashes` (uint64 [V]) the hash of each term, by its id.
    """
    terms, ranks = segment_files.ranks_of(tokens, hashes)
    offsets, edges = _sums(lengths), _sums(counts)
    begins = _sums(sentence_lengths)[:-1] - np.repeat(offsets[:-1], counts)
    return ForwardSegment(
        first, len(lengths), terms, offsets, edges, _frequencies(ranks, offsets, len(terms)),
        begins.astype(np.uint32), ranks,
    )  # fmt: skip


def _frequencies(tokens: AnyArray, offsets: AnyArray, terms: int) -> AnyArray:
    found = np.zeros(terms, dtype=np.uint32)
    for low in range(0, len(offsets) - 1, ROWS):
        high = min(low + ROWS, len(offsets) - 1)
        part = tokens[offsets[low] : offsets[high]].astype(np.uint64)
        row = np.repeat(np.arange(high - low, dtype=np.uint64), np.diff(offsets[low : high + 1]))
        pairs = distinct(part << np.uint64(32) | row)
        found += np.bincount(pairs >> np.uint64(32), minlength=terms).astype(np.uint32)
    return found


def merged(segments: Sequence[ForwardSegment]) -> ForwardSegment:
    """Return one segment that holds the rows of consecutive segments."""
    hashes = distinct(np.concatenate([s.hashes for s in segments]))
    frequencies = np.zeros(len(hashes), dtype=np.uint32)
    tokens = []
    for segment in segments:
        rank = np.searchsorted(hashes, segment.hashes).astype(np.uint32)
        frequencies[rank] += segment.frequencies
        tokens.append(rank[segment.tokens] if len(rank) else segment.tokens)
    return ForwardSegment(
        segments[0].first,
        sum(s.documents for s in segments),
        hashes,
        _sums(np.concatenate([np.diff(s.offsets) for s in segments])),
        _sums(np.concatenate([np.diff(s.sentence_offsets) for s in segments])),
        frequencies,
        np.concatenate([s.sentences for s in segments]),
        np.concatenate(tokens),
    )


def _sums(sizes: AnyArray) -> Int64Array:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def write(segment: ForwardSegment, folder: Path) -> ForwardSegment:
    """Write a segment to a file named by its checksum, and return it like `read`. Raises OSError, DamagedError."""
    numbers = (
        segment.first,
        segment.documents,
        len(segment.hashes),
        len(segment.sentences),
        len(segment.tokens),
    )
    return read(segment_files.write(segment, numbers, folder, SUFFIX, LAYOUT))


def read(path: Path) -> ForwardSegment:
    """Map a file, check its whole content, and return the segment in it. Raises OSError, DamagedError."""

    def sizes(numbers: Sequence[int]) -> Sequence[int]:
        _, documents, terms, sentences, tokens = numbers
        return terms, documents + 1, documents + 1, terms, sentences, tokens

    return segment_files.read(
        path, LAYOUT, sizes, lambda n, arrays: ForwardSegment(n[0], n[1], **arrays, path=path), _consistent
    )


def read_folder(folder: Path, known: Mapping[str, ForwardSegment] | None = None) -> list[ForwardSegment]:
    """Return a folder's segments in row order; see `segment_files.read_folder`. Raises DamagedError, OSError."""
    return segment_files.read_folder(folder, NAME, read, "the forward index of row {row}", known)


def _consistent(segment: ForwardSegment) -> bool:
    """Return whether hashes, offsets and each row's sentence starts ascend, and each token is the rank of a term."""
    hashes, frequencies = segment.hashes, segment.frequencies
    if (hashes[1:] <= hashes[:-1]).any() or (frequencies > segment.documents).any():
        return False
    for offsets, total in (
        (segment.offsets, len(segment.tokens)),
        (segment.sentence_offsets, len(segment.sentences)),
    ):
        if offsets[0] != 0 or offsets[-1] != total or (offsets[1:] < offsets[:-1]).any():
            return False
    lengths, counts = np.diff(segment.offsets), np.diff(segment.sentence_offsets)
    if ((counts > 0) != (lengths > 0)).any():
        return False
    starts, begins = segment.sentences, segment.sentence_offsets[:-1][counts > 0]
    later = starts[1:] > starts[:-1]
    later[begins[1:] - 1] = True  # the first sentence of a row begins at 0
    if starts[begins].any() or not later.all() or (starts >= np.repeat(lengths, counts)).any():
        return False
    parts = (segment.tokens[i : i + CHUNK] for i in range(0, len(segment.tokens), CHUNK))
    return all(part.max() < len(hashes) for part in parts)


def check_lengths(segments: Sequence[ForwardSegment]) -> None:
    """Raise DamagedError if the file of a segment has become shorter since it was mapped."""
    for segment in segments:
        check_length(mapping_of(segment.tokens), segment.path)
