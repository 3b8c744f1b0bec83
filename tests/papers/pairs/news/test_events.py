"""Pairs for the same event: labels, neighbours by a loop, and that a model learns to distinguish neighbours."""

import random

import numpy as np
import pytest

from linker.base.errors import InputError
from linker.papers.news.articles import Article, NewsPair
from linker.papers.news.events import event_pairs, nearest_pairs
from linker.papers.news.selftrain import articles_of
from linker.papers.news.siamese import RememberingEncoder
from linker.papers.news.similarity import train
from linker.papers.news.similarity_config import configure
from tests.helpers import HashEncoder
from tests.papers.pairs.news.news_data import STORIES, news

ENCODER = RememberingEncoder(HashEncoder(16))


def test_a_pair_is_one_event_up_to_the_bound_and_neighbours_are_others() -> None:
    pairs = news(12)
    found = event_pairs(pairs, ENCODER, 1)
    assert [p.score for p in found[:12]] == [1.0 if (p.score or 4) <= 1.5 else 4.0 for p in pairs]
    assert {p.score for p in found[12:]} == {4.0}
    assert [p.id for p in found[12:]] == [p.id for p in nearest_pairs(pairs, ENCODER, 1)]


def test_neighbours_are_those_of_a_loop() -> None:
    pairs = news(10)
    articles = articles_of(pairs)
    vectors = [ENCODER.encode([a.full])[0] for a in articles]
    joined = {frozenset((p.first.full, p.second.full)) for p in pairs}
    wanted = set()
    for row, article in enumerate(articles):
        others = [
            (float(vectors[row] @ vectors[n]), -n)
            for n, other in enumerate(articles)
            if n != row and frozenset((article.full, other.full)) not in joined
        ]
        wanted |= {frozenset((row, -n)) for _, n in sorted(others)[-2:]}
    rows = {a.full: n for n, a in enumerate(articles)}
    found = nearest_pairs(pairs, ENCODER, 2)
    assert {frozenset((rows[p.first.full], rows[p.second.full])) for p in found} == wanted
    assert len(found) == len(wanted)


def test_both_kinds_of_pairs_are_needed() -> None:
    unlike = [NewsPair(p.id, p.first, p.second, 4.0) for p in news(5)]
    with pytest.raises(InputError, match=r"0 of 5 pairs have a score of at most 1\.5"):
        event_pairs(unlike, ENCODER)


def events(count: int, seed: int) -> list[NewsPair]:
    """Every article has words from one story; pairs about one event share a number unique to that event."""
    rng = random.Random(seed)

    def article(number: int) -> Article:
        words = " ".join(rng.choices(STORIES[0].split(), k=20))
        return Article(f"The {words} and {number} people saw {number} of it.", "", "en")

    pairs = []
    for n in range(count):
        first, other = 1000 + 7 * (seed * count + n), 5000 + 3 * n
        same = n % 2 == 0
        second = first if same else other
        pairs.append(NewsPair(f"{n}", article(first), article(second), 1.0 if same else 3.0))
    return pairs


def test_a_model_tells_one_event_from_its_nearest_neighbours() -> None:
    config = configure("event", {}, entities=False)
    model = train(event_pairs(events(60, 0), ENCODER), config, encoder=ENCODER)
    judged = events(30, 1)
    scores = model.predict(judged).scores
    same = np.array([pair.score == 1.0 for pair in judged])
    neighbours = model.predict(nearest_pairs(judged, ENCODER, 1)).scores
    assert scores[same].max() < min(scores[~same].min(), neighbours.min())
