"""What a pair shares: entities by group, words by weight, as the first article writes them."""

import pytest

from linker.papers.news.articles import Article, NewsPair
from linker.papers.news.overlap import Overlap
from linker.papers.news.recognise import Recogniser
from linker.papers.news.sharing import shared, shared_words
from tests.papers.pairs.news.news_data import pipeline

FIRST = Article("Acme floods hit London on Monday, and 5 of London's boats sank, said Globex.", "", "en")
SECOND = Article("On Monday 5 boats of Acme sank in London; flooding was heavy.", "", "en")


@pytest.fixture(scope="module")
def recogniser(tmp_path_factory: pytest.TempPathFactory) -> Recogniser:
    folder = tmp_path_factory.mktemp("ner")
    pipeline(folder)
    return Recogniser({"": str(folder)})


def test_entities_that_both_name_are_listed_by_group(recogniser: Recogniser) -> None:
    (found,) = shared([NewsPair("p", FIRST, SECOND)], None, recogniser)
    assert found.entities == {"GEO": ["london"], "ORG": ["acme"], "DATE": ["monday"], "QTY": ["5"]}
    assert found.entity_text == "GEO: london; ORG: acme; DATE: monday; QTY: 5"
    (found,) = shared([NewsPair("p", FIRST, Article("unlike", "", "en"))], None, recogniser)
    assert (found.entities, found.words, found.entity_text) == ({}, [], "")
    assert shared([], None, None) == []


def test_words_are_those_of_both_as_the_first_writes_them() -> None:
    (found,) = shared([NewsPair("p", FIRST, SECOND)], None, None)
    assert found.entities == {}
    assert {"floods", "boats", "sank", "London", "Acme", "5"} <= set(found.words)
    assert not {"Globex", "heavy", "hit", "said"} & set(found.words)


def test_rare_words_come_first_and_top_limits_them() -> None:
    common = ["the storm came", "the rain fell", "the wind blew", "a harbour"]
    overlap = Overlap.fit(common)
    words = shared_words(overlap, "The harbour and the the wind", "the wind in the harbour", 9)
    assert set(words) == {"harbour", "The", "wind"}
    products = overlap.products("words", "The harbour and the the wind", "the wind in the harbour")
    assert [w.lower()[:5] for w in words] == sorted(products, key=lambda t: (-products[t], t))
    assert shared_words(overlap, "a wind", "the wind", 0) == []


def test_chinese_words_are_pairs_of_characters() -> None:
    overlap = Overlap.fit(["国家统计局公布", "今天的比赛", "国家队"])
    first, second = "国家统计局公布GDP数据", "统计局今天公布，数据好"
    assert set(shared_words(overlap, first, second)) == {"统计", "计局", "公布", "数据"}
    assert overlap.cosines([first], [second])[0, 0] > 0.4
    assert overlap.cosines([first], ["比赛"])[0, 0] == 0
