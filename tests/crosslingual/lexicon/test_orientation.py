"""A dictionary given the wrong way round: worked counts, the note, and the same links as the right way round."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from linker.base.errors import InputError
from linker.corpora.dictionaries import Dictionary
from linker.crosslingual.lexicon.orientation import OrientationCounts, matches, orient
from linker.crosslingual.methods import link
from linker.crosslingual.task import Task
from tests.crosslingual.synthetic import twin
from tests.crosslingual.tiny import pages

FRENCH = pages({"a": "le chat dort", "b": "la maison de Paris", "c": "table ronde"}, "fr")
ENGLISH = pages({"x": "the cat sleeps", "y": "the house of Paris", "z": "round table"}, "en")
PAIRS = (("chat", "cat"), ("dort", "sleeps"), ("maison", "house"), ("Paris", "Paris"), ("chien", "dog"))


def dictionary(*pairs: tuple[str, str]) -> Dictionary:
    return Dictionary(Path("fr-en.tsv"), "tsv", pairs)


def turned(given: Dictionary) -> Dictionary:
    return replace(given, pairs=tuple((b, a) for a, b in given.pairs))


def test_the_direction_takes_clear_evidence() -> None:
    # "Paris" matches both ways, "chien" neither.
    assert matches(dictionary(*PAIRS), FRENCH, ENGLISH) == OrientationCounts(3, 0, 5)
    assert matches(turned(dictionary(*PAIRS)), FRENCH, ENGLISH) == OrientationCounts(0, 3, 5)


@pytest.mark.parametrize(
    ("straight", "back", "wrong"), [(0, 3, True), (0, 2, False), (3, 7, True), (3, 6, False)]
)
def test_it_takes_clear_evidence(straight: int, back: int, wrong: bool) -> None:
    assert OrientationCounts(straight, back, 100).wrong_way_round is wrong


def test_a_turned_dictionary_is_turned_back_with_a_note(caplog: pytest.LogCaptureFixture) -> None:
    right = dictionary(*PAIRS)
    with caplog.at_level(logging.INFO, "linker"):
        assert orient(right, FRENCH, ENGLISH) is right
        assert not caplog.messages
        found = orient(turned(right), FRENCH, ENGLISH)
    assert found.pairs == right.pairs and found.turned
    (message,) = caplog.messages
    assert "fr-en.tsv: leads from en to fr, so it is reversed" in message
    assert "of 5 pairs, 3 match the pages like this and 0 as given" in message


def test_a_dictionary_of_other_languages_is_noted_and_kept(caplog: pytest.LogCaptureFixture) -> None:
    other = dictionary(("Hund", "hond"), ("Katze", "kat"))
    with caplog.at_level(logging.INFO, "linker"):
        assert orient(other, FRENCH, ENGLISH) is other
    assert caplog.messages == ["fr-en.tsv: none of 2 pairs matches the pages: does it lead from fr to en?"]


def test_links_are_the_same_either_way() -> None:
    corpus = twin(pages=60)
    right = dictionary(*corpus.dictionary)
    first, second = (
        link(Task(corpus.source, corpus.target, (given,)), "dictionary") for given in (right, turned(right))
    )
    np.testing.assert_array_equal(first.candidates.targets, second.candidates.targets)
    assert "turned_dictionaries" not in first.metadata
    assert second.metadata["turned_dictionaries"] == ["fr-en.tsv"]


@pytest.mark.parametrize(
    ("straight", "back", "mixed"), [(40, 10, False), (39, 10, True), (9, 9, False), (10, 40, False)]
)
def test_few_pairs_against_the_others_are_no_mixture(straight: int, back: int, mixed: bool) -> None:
    assert OrientationCounts(straight, back, 100).mixed is mixed


def test_a_dictionary_with_every_second_line_turned_is_refused() -> None:
    corpus = twin(pages=80)
    pairs = tuple(
        (b, a) if line % 2 else (a, b) for line, (a, b) in enumerate([*corpus.dictionary, *corpus.dictionary])
    )
    with pytest.raises(InputError, match=r"mixes both directions.*put the word in und first in every line"):
        orient(dictionary(*pairs), corpus.source, corpus.target)
    assert orient(dictionary(*corpus.dictionary), corpus.source, corpus.target).pairs == corpus.dictionary
