"""The treatment of numbers, addresses, handles, hashtags and short words, and the settings for it."""

import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.errors import IndexesError
from indexes.text.analysis import Analysis
from indexes.text.marking import cut, excerpt, part, words_in
from indexes.text.parameters import LANGUAGES, AnalysisSettings, Bm25Parameters
from indexes.text.rewriting import DECIMAL_COMMA, POINT, words_of
from linker.review.fields import MetadataField, of_metadata


def terms(text: str, language: str = "none", **others: object) -> list[str]:
    analysis = Analysis(AnalysisSettings(language, **others))  # type: ignore[arg-type]  # names are checked there
    return [term.replace(POINT, ".") for term in analysis.terms(analysis.prepare(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4,250", "4250"), ("4250", "4250"), ("1,000,000", "1000000"), ("3.5", "3.5"), ("3,5", "3.5"),
        ("1,234.56", "1234.56"), ("1.234.567", "1234567"), ("1.234,5", "1234.5"), ("1.234", "1.234"),
        ("0.250", "0.250"), ("0,250", "0.250"), ("12,34", "12.34"), ("$4.2million", "4.2million"),
        ("v1.2", "v1.2"), ("10,000th", "10000th"), ("1.2.3", "1 2 3"), ("12.05.2021", "12 05 2021"),
        ("1,2,3", "1 2 3"), ("1,2345", "1.2345"), ("1,234,56", "1 234 56"), ("e.g. 5.", "e g 5"),
        ("in 2016, 17", "in 2016 17"), (".5", "5"), ("１，２３４", "１ ２３４"), ("٣,٤", "٣ ٤"),
    ],
)  # fmt: skip
def test_numbers_stay_whole(text: str, expected: str) -> None:
    assert terms(text) == expected.split()
    assert terms(f"a {text}; b") == ["a", *expected.split(), "b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4.250", "4250"), ("3,5", "3.5"), ("3.5", "3.5"), ("1.234,5", "1234.5"), ("4,250", "4.250")],
)  # fmt: skip
def test_where_the_comma_is_the_decimal_sign_points_group(text: str, expected: str) -> None:
    assert set(DECIMAL_COMMA) < set(LANGUAGES)
    for language in DECIMAL_COMMA:
        assert terms(text, language) == [expected]


@given(st.integers(1, 10**15))
def test_a_number_with_separators_is_the_number(n: int) -> None:
    assert terms(f"{n:,}", "english") == terms(str(n), "english") == [str(n)]
    if n >= 1000:
        assert terms(f"{n:,}".replace(",", "."), "german") == [str(n)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#ClimateChange now", "#climatechange climate change now"),
        ("thanks @realDonaldTrump!", "thanks @realdonaldtrump real donald trump"),
        ("#COVID19 #USElection_2020", "#covid19 covid 19 #uselection_2020 us election 2020"),
        ("see https://t.co/aB1?x=1,2 there", "see there"),
        ("www.example.org/a_b, x", "x"),
        ("pic.twitter.com/xYz and bit.ly/2", "and"),
        ("snake_case _emphasis_ a__b", "snake_case emphasis a__b"),
        ("U.S./Canada e.g./i.e.", "u s canada e g i e"),
        ("a@b.org # @ ##tag", "a @b b org #tag tag"),
        ("4,250 in #Paris", "4250 in #paris paris"),
        ("#हिन्दी", "#हिन्दी हिन्दी"),
        ("#été", "#été été"),
    ],
)
def test_posts(text: str, expected: str) -> None:
    assert terms(text, tokenizer="posts") == expected.split()


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("ClimateChange", "Climate Change"), ("climatechange", "climatechange"), ("BBCNews", "BBC News"),
        ("iPhone7", "i Phone 7"), ("__a__B", "a B"), ("ABC", "ABC"), ("ÄrzteTag", "Ärzte Tag"), ("_", ""),
    ],
)  # fmt: skip
def test_words_of_a_tag(tag: str, expected: str) -> None:
    assert words_of(tag) == expected.split()


@settings(deadline=None)
@given(st.from_regex(re.compile(r"\w{1,30}"), fullmatch=True))
def test_the_words_of_a_tag_are_its_letters(tag: str) -> None:
    assert "".join(words_of(tag)) == tag.replace("_", "")


@given(
    st.lists(
        st.sampled_from(["the", "Running", "AT", "x" * 119, "x" * 120, "4,250", "it's", "#Tag", "é", "", "٣"])
    ),
    st.lists(st.from_regex(re.compile(r"[a-z0-9]{1,9}", re.ASCII), fullmatch=True)),
    st.sampled_from(["none", "english", "german", "turkish", "chinese", "tamil"]),
    st.sampled_from(["words", "posts"]),
    st.integers(1, 3),
    st.booleans(),
)
def test_pieces_that_are_analysed_together_have_the_terms_of_each(
    odd: list[str], plain: list[str], language: str, tokenizer: str, shortest: int, drops: bool
) -> None:
    drops &= language in ("english", "german")
    analysis = Analysis(
        AnalysisSettings(language, tokenizer, drops, shortest)  # type: ignore[arg-type]  # one of its names
    )
    for pieces in (plain, [*plain, *odd, *plain]):
        assert [*map(list, analysis.terms_of_each(pieces))] == [analysis.terms(piece) for piece in pieces]


def test_short_terms_and_stop_words_are_dropped_from_documents() -> None:
    text = "The cat is in a 7 box"
    assert terms(text, "english") == ["the", "cat", "is", "in", "a", "7", "box"]
    assert terms(text, "english", min_token=2) == ["the", "cat", "is", "in", "box"]
    assert terms(text, "english", stop_words=True) == ["cat", "7", "box"]
    analysis = Analysis(AnalysisSettings(stop_words=True, min_token=2))
    assert analysis.query_terms("the 7 a") == {}
    assert Analysis("english").query_terms("the a") == {"the": 1, "a": 1}


def test_a_huge_text_of_almost_marks_is_read_at_once() -> None:
    for piece in ("a.", "1,", "@", "a", "www", "http:/", "1.5,"):
        assert terms(piece * 100_000, tokenizer="posts") is not None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"language": "klingon"}, "unknown language 'klingon'"),
        ({"tokenizer": "tweets"}, "unknown tokenizer 'tweets': choose one of words, posts"),
        ({"language": "turkish", "stop_words": True}, "no list of stop words for 'turkish': leave out `stop_words`"),
        ({"language": "none", "stop_words": True}, "no list of stop words"),
        ({"min_token": 0}, "`min_token` is 0: it must be from 1"),
        ({"version": 3}, "version 3 of the analysis"), ({"version": 1}, "version 1 of the analysis"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(IndexesError, match=message):
        AnalysisSettings(**settings)  # type: ignore[arg-type]  # that is what is tested


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k1", -0.1), ("k1", math.nan), ("k1", math.inf), ("b", 1.1), ("b", math.nan), ("k3", -1),
        ("k3", math.nan),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(IndexesError, match=f"BM25's {name} is"):
        Bm25Parameters(**{name: value})  # type: ignore[arg-type]


@given(st.floats(0, 1000), st.floats(0, 1), st.floats(0) | st.just(math.inf))
def test_parameters_come_back_from_json(k1: float, b: float, k3: float) -> None:
    parameters = Bm25Parameters(k1, b, k3)
    written = json.dumps(parameters.to_json(), allow_nan=False)
    assert Bm25Parameters.from_json(json.loads(written)) == parameters
    assert parameters.changed() == parameters
    assert parameters.changed(k3=0) == Bm25Parameters(k1, b, 0)


ENGLISH = Analysis("english")


def marked(analysis: Analysis, text: str, query: str) -> list[tuple[str, bool]]:
    wanted = analysis.query_terms(query)
    return cut(text, ((a, b) for a, b, terms in words_in(analysis, text) if not terms.isdisjoint(wanted)))


def words(analysis: Analysis, text: str, query: str) -> list[str]:
    return [piece for piece, hit in marked(analysis, text, query) if hit]


@pytest.mark.parametrize(
    ("language", "query", "text", "expected"),
    [
        ("english", "flooded street", "Streets are flooding; a flood", ["Streets", "flooding", "flood"]),
        ("spanish", "inundada", "calles inundadas en Valencia", ["inundadas"]),
        ("chinese", "大雨", "今天大雨很大", ["大雨"]),
        ("none", "flood", "floods flood", ["flood"]),
        ("english", "the rain", "the rain", ["rain"]),
        ("english", "O'Brien in the U.S.", "O’Brien left the U.S. today", ["O’Brien"]),
        ("german", "Zürich", "in Zu\u0308rich", ["Zu\u0308rich"]),
        ("chinese", "手机", "新iPhone手机", ["手机"]),
    ],
)  # fmt: skip
def test_words_are_marked_by_their_stems(language: str, query: str, text: str, expected: list[str]) -> None:
    assert words(Analysis(language), text, query) == expected


@given(st.text(max_size=200), st.text(max_size=20), st.integers(10, 60), st.integers(0, 200))
def test_no_character_is_lost(text: str, query: str, length: int, around: int) -> None:
    pieces = marked(ENGLISH, text, query)
    assert "".join(piece for piece, _ in pieces) == text
    assert (
        "".join(piece for piece, _ in part(pieces, around, around + length)) == text[around : around + length]
    )
    around = min(around, max(len(text) - 1, 0))
    cut, shift = excerpt(pieces, length, around)
    joined = "".join(piece for piece, _ in cut)
    assert joined.removeprefix("… ").removesuffix(" …") in text or len(text) <= length
    assert len(joined) <= max(length + 4, length)
    assert not text or joined[around - shift] == text[around]


def test_an_excerpt_shows_what_it_is_around() -> None:
    text = "word " * 200 + "flood " + "word " * 200
    pieces, _ = excerpt(marked(ENGLISH, text, "flood"), 100, text.index("flood"))
    assert ("flood", True) in pieces
    assert pieces[0] == ("… ", False)
    assert pieces[-1] == (" …", False)


def test_fields_are_told_by_their_values() -> None:
    sample = [
        {"lang": "es" if i % 3 else "en", "likes": i, "date": f"2026-03-{i % 28 + 1:02}", "url": f"https://x/{i}",
         "user": f"u{i % 40}", "tags": ["a", "b"], "empty": None, "odd=": "x",
         "seen": "soon" if i == 7 else f"2026-03-{i % 28 + 1:02}", "Date": f"{i}.3.2026"}
        for i in range(200)
    ]  # fmt: skip
    assert {f.name: f for f in of_metadata(sample)} == {
        "lang": MetadataField("lang", "choice", ("es", "en")), "likes": MetadataField("likes", "number"),
        "date": MetadataField("date", "date"), "user": MetadataField("user", "text"),
        "tags": MetadataField("tags", "choice", ("a", "b")),
        "seen": MetadataField("seen", "undated", ("soon",)),
        "Date": MetadataField("Date", "undated", ("0.3.2026",)),
    }  # fmt: skip
