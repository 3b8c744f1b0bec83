"""Find the words of a text and their BM25 terms, and split a text into marked and unmarked pieces."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from indexes.text.analysis import CJK_RUN, Analysis
from indexes.text.parameters import BIGRAMS
from indexes.text.rewriting import WORD

_WORD = re.compile(rf"[@#]?{WORD}(?:['’]{WORD})*")
# a run of characters written without spaces, or the text between two such runs
_PART = re.compile(f"{CJK_RUN.pattern}|[^{CJK_RUN.pattern[1:]}")


def words_in(analysis: Analysis, text: str) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Yield the start, end and terms of each word, or of each pair of characters in scripts without spaces."""
    known: dict[str, frozenset[str]] = {}

    def terms(word: str) -> frozenset[str]:
        if word not in known:
            known[word] = frozenset(analysis.terms(analysis.prepare(word)))
        return known[word]

    parts = _PART if analysis.language in BIGRAMS else _WORD
    for match in _WORD.finditer(text):
        for part in parts.finditer(text, *match.span()):
            start, end = part.span()
            if parts is _PART and CJK_RUN.match(part[0]):
                for at in range(start, max(start + 1, end - 1)):
                    yield at, min(at + 2, end), terms(text[at : min(at + 2, end)])
            elif end - start > 1 or CJK_RUN.match(part[0]):  # a single letter ("U.S.") says little
                yield start, end, terms(part[0])


def cut(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[str, bool]]:
    """Return the text in pieces, flagged True inside of `spans`, which ascend and may overlap their neighbours."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    edges = [0, *(edge for span in joined for edge in span), len(text)]
    pieces = [(text[a:b], bool(i % 2)) for i, (a, b) in enumerate(pairwise(edges))]
    return [piece for piece in pieces if piece[0]]


def part(pieces: Iterable[tuple[str, bool]], start: int, stop: int) -> list[tuple[str, bool]]:
    """Return the pieces cut to the characters from `start` up to, but excluding, `stop`."""
    found, at = list[tuple[str, bool]](), 0
    for piece, is_marked in pieces:
        if text := piece[max(start - at, 0) : max(stop - at, 0)]:
            found.append((text, is_marked))
        at += len(piece)
    return found


def excerpt(
    pieces: Sequence[tuple[str, bool]], length: int, around: int
) -> tuple[list[tuple[str, bool]], int]:
    """Return about `length` characters of marked pieces, starting a little before the character at `around`.

    If text is left out, the excerpt begins with "… " or ends with " …". Also returns the offset: a character's position
    in the text, less the offset, is its position in the excerpt.
    """
    text = "".join(piece for piece, _ in pieces)
    start = max(0, min(around - length // 4, len(text) - length))
    start = text.find(" ", start - 1, around) + 1 or start if start else 0  # the beginning of a word
    before, after = [("… ", False)] * (start > 0), [(" …", False)] * (start + length < len(text))
    return [*before, *part(pieces, start, start + length), *after], start - 2 * len(before)
