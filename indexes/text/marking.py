"""Mark the words of a text that a query shares with it, as BM25 sees them: by their stems."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

from indexes.text.analysis import CJK_RUN, Analysis
from indexes.text.parameters import BIGRAMS
from indexes.text.rewriting import WORD

_WORD = re.compile(rf"[@#]?{WORD}(?:['’]{WORD})*")
_PART = re.compile(
    f"{CJK_RUN.pattern}|[^{CJK_RUN.pattern[1:]}"
)  # a run without spaces, or what is between two


def marked(analysis: Analysis, text: str, terms: Collection[str]) -> list[tuple[str, bool]]:
    """Return the text in pieces, each with whether it is a word of `terms` (of `Analysis.query_terms`).

    The pieces joined are the text. In languages that are indexed by pairs of characters, pairs are marked.
    """
    return cut(
        text, ((start, end) for start, end, of in words_in(analysis, text) if not of.isdisjoint(terms))
    )


def words_in(analysis: Analysis, text: str) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Yield where each word of the text begins and ends, and its terms; of a run without spaces, each pair."""
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
            elif end - start > 1 or CJK_RUN.match(part[0]):  # a lone letter ("U.S.") says little
                yield start, end, terms(part[0])


def cut(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[str, bool]]:
    """Return the text cut at spans in ascending order, which may overlap their neighbours, each with True."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    edges = [0, *(edge for span in joined for edge in span), len(text)]
    pieces = [(text[a:b], bool(i % 2)) for i, (a, b) in enumerate(pairwise(edges))]
    return [piece for piece in pieces if piece[0]]


def excerpt(pieces: list[tuple[str, bool]], length: int) -> list[tuple[str, bool]]:
    """Return at most about `length` characters of marked pieces, from a little before the first marked one.

    Where something is left out, "… " begins or " …" ends the excerpt.
    """
    text = "".join(piece for piece, _ in pieces)
    if len(text) <= length:
        return pieces
    before = "".join(piece for piece, _ in pieces[: next((i for i, (_, hit) in enumerate(pieces) if hit), 0)])
    start = max(0, min(len(before) - length // 4, len(text) - length))
    start = text.rfind(" ", 0, start) + 1 if start else 0
    cut: list[tuple[str, bool]] = [("… ", False)] if start else []
    at = 0
    for piece, hit in pieces:
        part = piece[max(start - at, 0) : max(start + length - at, 0)]
        if part:
            cut.append((part, hit))
        at += len(piece)
    return [*cut, (" …", False)] if start + length < len(text) else cut
