"""Detecting a dictionary that is the wrong way round, from the words of the pages."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from linker.base.errors import InputError
from linker.base.logs import logger
from linker.corpora.dictionaries import Dictionary
from linker.crosslingual.pages.pages import Pages

T = TypeVar("T")

PAGES = 200  # pages per language from which the words are taken
PAIRS = 5000  # dictionary pairs that are looked up
FEWEST = 3  # a dictionary is reversed only if at least this many pairs match in reverse
TIMES = 2  # a dictionary is reversed if this ratio of pairs (reversed : as given) is exceeded
# In real dictionaries, at most one in fifty of the matching pairs matches only in the other direction.
MIXED, LEAST = 0.2, 10  # minimum share and number of pairs in each direction of a mixed dictionary


@dataclass(frozen=True, slots=True)
class OrientationCounts:
    """How many of the `tried` pairs of a dictionary match the pages only `as_given`, and how many only `turned`."""

    as_given: int
    turned: int
    tried: int

    @property
    def wrong_way_round(self) -> bool:
        """Whether the dictionary leads from the target's language to the source's."""
        return self.turned >= FEWEST and self.turned > TIMES * self.as_given

    @property
    def mixed(self) -> bool:
        """Whether some lines lead from one language to the other, and some back."""
        fewer = min(self.as_given, self.turned)
        return fewer >= LEAST and fewer > MIXED * (self.as_given + self.turned)


def orient(dictionary: Dictionary, source: Pages, target: Pages) -> Dictionary:
    """Return the dictionary with the words of the source's language first, reversed if necessary.

    The log reports it if the dictionary is reversed, or if none of its words is on the pages. Raises InputError for a
    dictionary that mixes both directions.
    """
    found = matches(dictionary, source, target)
    codes = source.language.code, target.language.code
    if found.mixed:
        raise InputError(
            f"{dictionary.path} mixes both directions: of {found.tried:,} pairs, {found.as_given:,} match the pages "
            f"from {codes[0]} to {codes[1]} and {found.turned:,} only from {codes[1]} to {codes[0]}; put the word in "
            f"{codes[0]} first in every line"
        )
    if found.wrong_way_round:
        logger.warning(
            "%s: leads from %s to %s, so it is reversed: of %s pairs, %s match the pages like this and %s as given",
            dictionary.path, *reversed(codes), f"{found.tried:,}", f"{found.turned:,}", f"{found.as_given:,}",
        )  # fmt: skip
        return replace(dictionary, pairs=tuple((b, a) for a, b in dictionary.pairs), turned=True)
    if not found.as_given:
        logger.warning(
            "%s: none of %s pairs matches the pages: does it lead from %s to %s?",
            dictionary.path, f"{found.tried:,}", *codes,
        )  # fmt: skip
    return dictionary


def matches(dictionary: Dictionary, source: Pages, target: Pages) -> OrientationCounts:
    """Count the pairs that match the pages in one direction, on samples of the pairs and of the pages.

    Pairs that match in both, such as names, say nothing about the direction and count in neither.
    """
    pairs = _sample(dictionary.pairs, PAIRS)
    ours, theirs = _words(source), _words(target)

    def match(foreign: str, english: str) -> bool:
        known = any(source.language.term(word) in ours for word in source.language.headwords(foreign))
        return known and not theirs.isdisjoint(target.language.terms(english))

    directions = [(match(a, b), match(b, a)) for a, b in pairs]
    return OrientationCounts(directions.count((True, False)), directions.count((False, True)), len(pairs))


def _words(pages: Pages) -> set[str]:
    return {term for text in _sample(pages.texts, PAGES) for term in pages.language.terms(text)}


def _sample(items: Sequence[T], most: int) -> list[T]:
    """Return up to `most` items, drawn with a fixed seed: evenly spaced items could all be of one kind."""
    chosen = random.Random(0).sample(range(len(items)), min(most, len(items)))
    return [items[i] for i in sorted(chosen)]
