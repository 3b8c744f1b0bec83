"""Terms by number while an index is written, and by hash when it is searched, with what the analysis said remembered.

Analysing a word costs a microsecond or more, looking it up a twentieth; texts repeat their words. So a text is cut
where no language continues a word (SEPARATED), and each piece that was not seen before goes through the analysis alone.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter

import numpy as np
import numpy.typing as npt
import xxhash

from indexes.analysis import Analysis, encodable

# What is between these, no analysis joins: punctuation and symbols that are no letter, mark or number in any script.
SEPARATED = re.compile(
    "[^\x00-/:-@[-`{-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7\u060c\u060d\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965"
    "\u2000-\u206f\u20a0-\u20c0\u2190-\u23ff\u3000-\u3004\u3008-\u3020\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40"
    "\uff5b-\uff65\U0001f300-\U0001f64f\U0001f680-\U0001f6ff]+"
)
ASCII = "".join(
    c if c.isalnum() else " " for c in map(chr, range(128))
)  # the same where all is ASCII, four times as fast
MOST = 500_000  # pieces remembered


def pieces(text: str) -> list[str]:
    """Cut a prepared text where no language continues a word."""
    return text.translate(ASCII).split() if text.isascii() else SEPARATED.findall(text)


def term_hash(term: str) -> int:
    """Return the number of 64 bits by which postings know a term."""
    return xxhash.xxh3_64_intdigest(term.encode("utf-8"))


class Vocabulary(dict[str, int]):
    """Piece → its term's number in order of appearance; −n − 1 where `several[n]` holds none or more than one."""

    def __init__(self, analysis: Analysis) -> None:
        super().__init__()
        self._analysis = analysis
        self._number: dict[str, int] = {}
        self._hashes = array("Q")
        self._several: list[list[int]] = []

    def __missing__(self, piece: str) -> int:
        terms = self._analysis.analyzer.analyze(encodable(piece))
        numbers = [self._numbered(term) for term in terms]
        if len(numbers) == 1:
            self[piece] = numbers[0]
        else:
            self._several.append(numbers)
            self[piece] = -len(self._several)
        return self[piece]

    def _numbered(self, term: str) -> int:
        number = self._number.setdefault(term, len(self._number))
        if number == len(self._hashes):
            self._hashes.append(term_hash(term))
        return number

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of a text's terms, in order."""
        found = list(map(self.__getitem__, pieces(self._analysis.prepare(text))))
        if found and min(found) < 0:
            return [n for f in found for n in ((f,) if f >= 0 else self._several[-f - 1])]
        return found

    @property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """The hash of each term by number: a view, in which no term can be added."""
        return np.frombuffer(self._hashes, dtype=np.uint64)

    def full(self) -> bool:
        """Say whether so much is remembered that it is time to begin anew."""
        return len(self) > MOST


class QueryTerms:
    """A query's terms by hash: as Analysis.query_terms, which knows them by name."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._seen: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}

    def of(self, text: str) -> Counter[int]:
        """Return hashes and how often each occurs; stop words only if there is nothing else."""
        found = [
            self._seen.get(piece) or self._analyse(piece) for piece in pieces(self._analysis.prepare(text))
        ]
        wanted = Counter(term for content, _ in found for term in content)
        return wanted or Counter(term for _, everything in found for term in everything)

    def _analyse(self, piece: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if len(self._seen) > MOST:
            self._seen.clear()
        word = encodable(piece)
        content, everything = (
            tuple(map(term_hash, analyzer.analyze(word)))
            for analyzer in (self._analysis.for_queries, self._analysis.analyzer)
        )
        self._seen[piece] = content, everything
        return content, everything
