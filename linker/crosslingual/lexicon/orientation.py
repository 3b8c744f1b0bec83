"""Noticing a dictionary that is the wrong way round, by the words of the pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from linker.crosslingual.lexicon.dictionaries import Dictionary
from linker.crosslingual.pages.pages import Pages
from linker.logs import logger

T = TypeVar("T")

PAGES = 200  # of each language, from which the words are taken
PAIRS = 5000  # of the dictionary, which are looked up
FEWEST = 3  # pairs that have to match the other way round
TIMES = 2  # as many pairs have to match the other way round as match as given


@dataclass(frozen=True, slots=True)
class Matches:
    """How many of the `tried` pairs of a dictionary have both words on the pages only `as_given`, or only `turned`."""

    as_given: int
    turned: int
    tried: int

    @property
    def wrong_way_round(self) -> bool:
        """Whether the dictionary leads from the target's language to the source's."""
        return self.turned >= FEWEST and self.turned > TIMES * self.as_given


def oriented(dictionary: Dictionary, source: Pages, target: Pages) -> Dictionary:
    """Return the dictionary with the words of the source's language first, turned round if necessary.

    The log says so where it is turned round, and where none of its words is on the pages.
    """
    found = matches(dictionary, source, target)
    codes = source.language.code, target.language.code
    if found.wrong_way_round:
        logger.warning(
            "%s: leads from %s to %s, so it is turned round: of %s pairs, %s match the pages like this and %s as given",
            dictionary.path, *reversed(codes), f"{found.tried:,}", f"{found.turned:,}", f"{found.as_given:,}",
        )  # fmt: skip
        return replace(dictionary, pairs=tuple((b, a) for a, b in dictionary.pairs), turned=True)
    if not found.as_given:
        logger.warning(
            "%s: none of %s pairs matches the pages: does it lead from %s to %s?",
            dictionary.path, f"{found.tried:,}", *codes,
        )  # fmt: skip
    return dictionary


def matches(dictionary: Dictionary, source: Pages, target: Pages) -> Matches:
    """Count the pairs that match the pages in one direction, on samples of the pairs and of the pages.

    Pairs that match in both, such as names, say nothing about the direction and count in neither.
    """
    pairs = _sample(dictionary.pairs, PAIRS)
    ours, theirs = _words(source), _words(target)

    def match(foreign: str, english: str) -> bool:
        known = any(source.language.term(word) in ours for word in source.language.headwords(foreign))
        return known and not theirs.isdisjoint(target.language.terms(english))

    directions = [(match(a, b), match(b, a)) for a, b in pairs]
    return Matches(directions.count((True, False)), directions.count((False, True)), len(pairs))


def _words(pages: Pages) -> set[str]:
    return {term for text in _sample(pages.texts, PAGES) for term in pages.language.terms(text)}


def _sample(items: Sequence[T], most: int) -> list[T]:
    """Return up to `most` items at equal distances."""
    count = min(most, len(items))
    return [items[i * len(items) // count] for i in range(count)]
