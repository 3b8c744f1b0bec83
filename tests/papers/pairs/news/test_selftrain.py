"""Pairs that BM25 samples, a model's labels for them, translated pairs, and pairs for the same event."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from indexes.text.bm25 import Bm25Index
from linker.base.errors import InputError
from linker.papers.news.articles import Article, NewsPair, scores_of
from linker.papers.news.events import event_pairs, nearest_pairs
from linker.papers.news.selftrain import articles_of, label, sample_pairs, translate_pairs
from linker.papers.news.siamese import RememberingEncoder
from linker.papers.news.similarity import train
from linker.papers.news.similarity_config import SimilarityConfig, configure
from linker.papers.news.translated import translated
from linker.scoring.pairs.translate import ScriptedTranslator
from linker.scoring.pairs.translations import ByLanguage
from tests.helpers import HashEncoder
from tests.papers.pairs.news.news_data import STORIES, news

ARTICLES = [
    Article("the ferry left the harbour in the storm", "Storm hits harbour"),
    Article("a storm came to the harbour", "Boats in the storm"),
    Article("storm and waves", "Waves"),
    Article("a party won the election", "Election"),
]


def ids(pairs: list[NewsPair]) -> set[tuple[int, int]]:
    rows = {article.full: row for row, article in enumerate(ARTICLES)}
    return {(rows[p.first.full], rows[p.second.full]) for p in pairs}


def sample(known: list[NewsPair], top: int = 5) -> set[tuple[int, int]]:
    return ids(sample_pairs(ARTICLES, Bm25Index("none"), known, top))


def test_articles_are_paired_with_what_shares_their_titles_words_but_not_with_known_pairs() -> None:
    """By hand: 0's title finds 1 and 2 (storm); 1's finds 0, 2 and, by "the", 3; the other two only themselves."""
    assert sample([]) == {(0, 1), (0, 2), (1, 2), (1, 3)}
    known = [NewsPair("k", ARTICLES[1], ARTICLES[0], 1.0)]
    assert (0, 1) in sample([], top=1)
    found = sample(known, top=1)
    assert (0, 1) not in found
    assert (0, 2) in found  # 0's second best takes its place


@pytest.mark.slow
def test_the_same_pairs_come_from_elasticsearch(elastic: str) -> None:
    from linker.papers.commands.similarity_pairs import _text_index

    articles = articles_of(news(12))
    with _text_index(elastic) as server, _text_index(None) as embedded:
        assert sample_pairs(articles, server, [], 3) == sample_pairs(articles, embedded, [], 3)


def test_a_pool_gives_partners_but_is_not_paired_with_itself() -> None:
    pool = [Article("a quiet harbour", "Harbour"), Article("another harbour", "Boats"), ARTICLES[1]]
    found = sample_pairs(ARTICLES, Bm25Index("none"), [], pool=pool)
    assert any(p.second == pool[0] for p in found)
    assert all(p.first in ARTICLES for p in found)
    without = sample_pairs(ARTICLES, Bm25Index("none"), [])
    assert {p.second.full for p in found} - {p.second.full for p in without} <= {a.full for a in pool}


def test_titles_are_searched_in_place_of_the_headlines_also_in_chinese() -> None:
    articles = [Article("die Partei gewann die Wahl", "Wahl", "de"), *ARTICLES]
    assert not any(p.first == articles[0] for p in sample_pairs(articles, Bm25Index("none"), []))
    titles = ["election", *(a.headline for a in ARTICLES)]
    found = sample_pairs(articles, Bm25Index("none"), [], titles=titles)
    assert [p.second for p in found if p.first == articles[0]] == [ARTICLES[3]]
    articles = [
        Article("昨天公布了数据。", "国家统计局", "zh"),
        Article("记者从统计局了解到", "", "zh"),
        Article("比赛开始", "", "zh"),
    ]
    found = sample_pairs(articles, Bm25Index("none"), [], 5)
    assert [(p.first, p.second) for p in found] == [(articles[0], articles[1])]


class Prefix:
    """Prefixes a text with the target's code."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        self.read.extend(texts)
        return [f"{target} {text}" for text in texts]


def test_both_sides_are_translated_into_every_language() -> None:
    pair = NewsPair("p", Article("eins", "Titel", "de"), Article("two", "", "en"), 1.0)
    found = translate_pairs([pair], Prefix(), ["fr", "en"], label="copy", sides=("first", "second"))
    assert {p.id: (p.first.full, p.second.full, p.kind) for p in found} == {
        "p-fr-first": ("fr Titel fr eins", "two", "fr-en"),
        "p-fr": ("Titel eins", "fr two", "de-fr"),
        "p-en-first": ("en Titel en eins", "two", "en-en"),  # the second is English already
    }
    assert {p.score for p in found} == {1.0}
    assert [p.id for p in translate_pairs([pair], Prefix(), "fr")] == ["p-fr"]


def test_articles_are_compared_in_english_and_each_is_translated_once() -> None:
    german, english, unknown = Article("eins", "", "de"), Article("one", "", "en"), Article("uno")
    pairs = [NewsPair("a", german, english), NewsPair("b", german, unknown)]
    translator = Prefix()
    found = translated(pairs, translator, "en")
    assert found[0].first == found[1].first == Article("en eins", "", "en")
    assert (found[0].second, found[1].second) == (english, unknown)
    assert translator.read == ["eins"]
    assert translated(pairs, None, "en") == pairs
    assert translated(pairs, ByLanguage({"tr": "none.tsv"}), "en") == pairs  # nothing translates German


def test_articles_are_distinct_and_an_index_with_documents_is_refused() -> None:
    pairs = [NewsPair("a", ARTICLES[0], ARTICLES[1]), NewsPair("b", ARTICLES[1], ARTICLES[2])]
    assert articles_of(pairs) == ARTICLES[:3]
    index = Bm25Index("none")
    index.add(["x"], ["y"])
    with pytest.raises(InputError, match="needs an empty text index; this one holds 1"):
        sample_pairs(ARTICLES, index, [])


def test_labels_are_the_models_and_pseudo_pairs_change_the_encoder_only() -> None:
    config = SimilarityConfig(features=("encoder", "overlap"), folds=3)
    pairs, encoder = news(24), RememberingEncoder(HashEncoder(16))
    model = train(pairs, config, encoder=encoder)
    sampled = sample_pairs(articles_of(pairs), Bm25Index("none"), pairs, 2)
    kept = NewsPair("kept", ARTICLES[0], ARTICLES[1], 2.5)
    labelled = label(model, [*sampled, kept])
    assert labelled[-1] == kept
    assert [p.score for p in labelled[:-1]] == model.predict(sampled).scores.tolist()
    assert label(model, []) == []
    cosines = model.predict(sampled).columns["cosine"]
    assert [p.score for p in label(model, sampled, "encoder")] == scores_of(cosines).tolist()
    again = train(pairs, config, pseudo=labelled, encoder=encoder)
    assert again.overlap is not None
    assert model.overlap is not None
    assert (again.overlap.frequencies == model.overlap.frequencies).all()
    before, after = (m.columns(pairs)["cosine"] for m in (model, again))
    assert (before != after).all()


PAIRS = [
    NewsPair("same", Article("eins", language="de"), Article("zwei", "Titel", "de"), 1.0),
    NewsPair("half", Article("eins", language="de"), Article("drei", language="de"), 2.5),
    NewsPair("far", Article("eins", language="de"), Article("vier", language="de"), 3.0),
    NewsPair("there", Article("eins", language="de"), Article("one", language="en"), 1.0),
    NewsPair("unknown", Article("eins"), Article("zwei"), 1.0),
]
TABLE = ScriptedTranslator(
    {("de", "en", "zwei"): "two", ("de", "en", "drei"): "three", ("de", "en", "Titel"): "Title"}
)


def test_like_pairs_are_translated_on_their_second_side_or_the_gap_is_named(tmp_path: Path) -> None:
    made = translate_pairs(PAIRS, TABLE, "en", label="copy")
    assert [(p.id, p.second, p.score) for p in made] == [
        ("same-en", Article("two", "Title", "en"), 1.0),
        ("half-en", Article("three", "", "en"), 2.5),
    ]
    assert all(p.first == PAIRS[0].first for p in made)
    assert [p.score for p in translate_pairs(PAIRS, TABLE, "en")] == [None, None]
    assert [p.id for p in translate_pairs(PAIRS, TABLE, "en", low=0.9)] == ["same-en"]
    with pytest.raises(InputError, match="has no de → fr translation of 'zwei'"):
        translate_pairs(PAIRS, TABLE, "fr")


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
