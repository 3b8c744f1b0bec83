"""Mark the words of a text that a query shares with it, as BM25 sees them: by their stems."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import groupby

from indexes.text.analysis import CJK_RUN, Analysis
from indexes.text.parameters import BIGRAMS

_WORD = re.compile(r"[@#]?[^\W_]+")


def marked(analysis: Analysis, text: str, terms: Collection[str]) -> list[tuple[str, bool]]:
    """Return the text in pieces, each with whether it is a word of `terms` (of `Analysis.query_terms`).

    The pieces joined are the text. In languages that are indexed by pairs of characters, pairs are marked.
    """
    hits = bytearray(len(text))  # one flag per character
    known: dict[str, bool] = {}
    for start, word in _words(analysis, text):
        if word not in known:
            known[word] = not set(analysis.terms(analysis.prepare(word))).isdisjoint(terms)
        if known[word]:
            hits[start : start + len(word)] = b"\1" * len(word)
    runs = ((bool(hit), len(list(run))) for hit, run in groupby(hits))
    pieces, at = [], 0
    for hit, length in runs:
        pieces.append((text[at : at + length], hit))
        at += length
    return pieces


def _words(analysis: Analysis, text: str) -> Iterator[tuple[int, str]]:
    """Yield the words of a text with their places; of a run without spaces, its overlapping pairs."""
    pairs = analysis.language in BIGRAMS
    for match in _WORD.finditer(text):
        if pairs and CJK_RUN.search(match[0]):
            for i in range(max(1, len(match[0]) - 1)):
                yield match.start() + i, match[0][i : i + 2]
        else:
            yield match.start(), match[0]


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
