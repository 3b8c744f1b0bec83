"""Linked pages as prose: names and code are removed; only words that need translating remain."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from linker.crosslingual.pages.pages import Pages

EDGES = re.compile(r"^[(\[\"'«»“”„‘’]+|[)\]\"'«»“”„‘’.,;:!?…。，、；：！？（）]+$")
LATIN = re.compile(r"[A-Za-z]")
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
OTHER_SCRIPTS = frozenset({"ru", "zh"})


def prose(source: Pages, target: Pages, known: Iterable[str]) -> tuple[Pages, Pages]:
    """Return both collections reduced to their words.

    Tokens with digits, symbols or inner capitals are removed, and so are names and identifiers: Latin words in texts
    of another script, and words that occur in both languages but are not among the `known` words of the source
    language. Line breaks and punctuation other than full stops are removed too.
    """
    words = [[_words(text) for text in pages.texts] for pages in (source, target)]
    ours, theirs = ({w.casefold() for page in pages for w in page} for pages in words)
    names = (ours & theirs) - {word.casefold() for word in known}
    if source.language.code in OTHER_SCRIPTS:
        names |= {word for word in ours if LATIN.search(word)}
    return _joined(source, words[0], names), _joined(target, words[1], names)


def _words(text: str) -> list[str]:
    """Return the words of a text, each with the full stop that ends its sentence, if one does."""
    words = []
    for token in text.split():
        bare = EDGES.sub("", token)
        if any("\u4e00" <= c <= "\u9fff" for c in bare):
            words += re.findall(r"[\u4e00-\u9fff]+", bare)
        elif WORD.fullmatch(bare) and (bare[1:] == bare[1:].lower()):
            words.append(bare)
    return words


def _joined(pages: Pages, words: list[list[str]], names: set[str]) -> Pages:
    texts = (" ".join(w for w in page if w.casefold() not in names) for page in words)
    return replace(pages, texts=tuple(texts))
