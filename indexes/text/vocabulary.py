"""Assign ids to terms while an index is written; analysis results are cached.

Analysing a word takes a microsecond or more, looking it up a twentieth of that, and words recur. So a text is split at
characters that end a word in every language (analysis.py), and only new pieces are analysed.
"""

from __future__ import annotations

import itertools
import os
from array import array
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import xxhash

from indexes import kernels
from indexes.dtypes import Int32Array, Int64Array
from indexes.text.analysis import Analysis

MOST = 500_000  # maximum numbers of cached pieces and of terms
PART = 1 << 20  # characters looked up at a time


def term_hash(term: str) -> int:
    """Return the 64-bit hash that identifies a term in postings."""
    return xxhash.xxh3_64_intdigest(term.encode("utf-8"))


def utf8(texts: Sequence[str]) -> bytes:
    """Return texts as the compiled functions read them, each followed by a byte 255, which UTF-8 does not use."""
    return b"".join([text.encode("utf-8", "replace") + b"\xff" for text in texts])


class TermVocabulary:
    """Assigns ids to terms: 0, 1, 2 … in order of appearance."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._number: dict[str, int] = {}  # term → id
        self._hashes = array("Q")  # hashes of the first terms, by id
        self._several: list[list[int]] = []  # term ids of each piece that has no term or several
        self._several_terms = 0  # total number of terms in `_several`
        self._pieces: dict[str, int] = {}  # piece → its term's id, or −n − 1 for _several[n]
        # The same, keyed by hashes of the pieces, for the compiled library; None if that is missing.
        posts = analysis.settings.tokenizer == "posts"
        self._table = PieceTable(posts) if kernels.load("postings") is not None else None

    def numbers(self, texts: Sequence[str]) -> tuple[Int32Array, Int64Array]:
        """Return the ids of all terms in order (int32 [tokens]), and how many there are per text (int64 [texts])."""
        prepared = [self._analysis.prepare(text) for text in texts]
        parts = [self._of_part(part) for part in _parts(prepared)]
        if len(parts) == 1:
            return parts[0]
        tokens, lengths = zip(*parts, strict=True)
        return np.concatenate(tokens), np.concatenate(lengths)

    def _of_part(self, texts: Sequence[str]) -> tuple[Int32Array, Int64Array]:
        if self._table is not None:
            numbers, ends = self._table.look_up(texts, self._numbers_of)
        else:
            cut = [self._analysis.pieces(text) for text in texts]
            ends = np.cumsum([len(c) for c in cut], dtype=np.int64)
            numbers = np.array([self._number_of_piece(p) for c in cut for p in c], dtype=np.int32)
        return self._expand(numbers, ends)

    def _number_of_piece(self, piece: str) -> int:
        number = self._pieces.get(piece)
        if number is None:
            (number,) = self._numbers_of([piece])
            self._pieces[piece] = number
        return number

    def _numbers_of(self, pieces: Sequence[str]) -> list[int]:
        numbers = self._number
        return [
            numbers.setdefault(terms[0], len(numbers)) if len(terms) == 1 else self._number_of(terms)
            for terms in self._analysis.terms_of_each(pieces)
        ]

    def _number_of(self, terms: Sequence[str]) -> int:
        """Return a negative number that stands for the terms of a piece that has none or several."""
        numbers = [self._number.setdefault(term, len(self._number)) for term in terms]
        self._several.append(numbers)
        self._several_terms += len(numbers)
        return -len(self._several)

    def _expand(self, numbers: Int32Array, ends: Int64Array) -> tuple[Int32Array, Int64Array]:
        """Return term ids and their count per text, given the pieces' `numbers` and where each text `ends`.

        A piece's number is its term's id, or negative if it has no term or several.
        """
        positions = np.flatnonzero(numbers < 0)
        if not len(positions):
            return numbers, np.diff(ends, prepend=0)
        terms = [self._several[-number - 1] for number in numbers[positions].tolist()]
        sizes = np.ones(len(numbers), dtype=np.int64)
        sizes[positions] = [len(several) for several in terms]
        edges = np.concatenate(([0], np.cumsum(sizes)))
        tokens = np.repeat(numbers, sizes)
        for position, several in zip(positions.tolist(), terms, strict=True):
            tokens[edges[position] : edges[position + 1]] = several
        return tokens, np.diff(edges[ends], prepend=0)

    @property
    def terms(self) -> list[str]:
        """The terms in the order of their ids."""
        return list(self._number)

    @property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """The hash of each term, by its id, uint64 [terms]."""
        self._hashes.extend(map(term_hash, itertools.islice(self._number, len(self._hashes), None)))
        return np.array(self._hashes, dtype=np.uint64)

    def full(self) -> bool:
        """Return whether the cache is full, so that a new vocabulary should be started."""
        entries = self._table.entries if self._table else len(self._pieces)
        return max(entries, len(self._number), len(self._several) + self._several_terms) > MOST


def _parts(texts: Sequence[str]) -> list[Sequence[str]]:
    """Return the texts in parts of about PART characters; without texts, one empty part."""
    ends = np.cumsum([len(text) for text in texts]) // PART
    edges = [0, *(np.flatnonzero(np.diff(ends)) + 1).tolist(), len(texts)]
    return [texts[a:b] for a, b in itertools.pairwise(edges)]


class PieceTable:
    """A hash table for the compiled library: pieces' numbers by 64-bit hash (collisions: as for terms, postings.py)."""

    def __init__(self, posts: bool) -> None:
        """`posts`: whether texts are split like posts (analysis.py)."""
        self._posts = posts
        self._library = kernels.load("postings")
        self._seed = int.from_bytes(os.urandom(8), "little", signed=True)
        self._resize(1 << 12)

    def _resize(self, slots: int) -> None:
        self._hashes, self._numbers = np.zeros(slots, dtype=np.uint64), np.zeros(slots, dtype=np.int32)
        self.entries = 0

    def look_up(
        self, texts: Sequence[str], numbers_of: Callable[[Sequence[str]], list[int]]
    ) -> tuple[Int32Array, Int64Array]:
        """Return the numbers of all pieces (int32 [pieces]), and the cumulative count of pieces (int64 [texts]).

        `numbers_of` returns the numbers of pieces that are not in the table yet.
        """
        data = utf8(texts)
        most = len(data) // 2 + 1
        piece_numbers, ends = np.empty(most, dtype=np.int32), np.empty(len(texts), dtype=np.int64)
        unknown, unknowns = np.empty((most, 4), dtype=np.int64), np.zeros(1, dtype=np.int64)
        count = kernels.call(
            self._library.number, data, len(data), self._posts, self._hashes,
            self._numbers, len(self._hashes), self._seed, piece_numbers, ends, unknown, unknowns,
        )  # fmt: skip
        position, hashes, begin, end = unknown[: unknowns[0]].T
        new, first, which = np.unique(hashes, return_index=True, return_inverse=True)
        spans = zip(begin[first].tolist(), end[first].tolist(), strict=True)
        # No piece contains a space, so all of them can be decoded together.
        pieces = b" ".join([data[a:b] for a, b in spans]).decode().split(" ") if len(first) else []
        numbers = np.array(numbers_of(pieces), dtype=np.int32)
        piece_numbers[position] = numbers[which]
        self._enter(new.view(np.uint64), numbers)
        return piece_numbers[:count], ends

    def _enter(self, hashes: npt.NDArray[np.uint64], numbers: Int32Array) -> None:
        total = self.entries + len(hashes)
        old = None
        if 2 * total > len(self._hashes):
            old = self._hashes, self._numbers
            self._resize(1 << (4 * total - 1).bit_length())
        for part in filter(None, (old, (hashes, numbers))):
            kernels.call(
                self._library.enter, *part, len(part[0]), self._hashes, self._numbers, len(self._hashes)
            )
        self.entries = total
