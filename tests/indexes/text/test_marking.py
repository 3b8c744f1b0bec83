"""Words of a text with their terms, and excerpts of marked pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes.text.analysis import Analysis
from indexes.text.marking import cut, excerpt, part, words_in
from linker.review.fields import MetadataField, of_metadata

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
    found, shift = excerpt(pieces, length, around)
    shown = "".join(piece for piece, _ in found)
    assert shown.removeprefix("… ").removesuffix(" …") in text or len(text) <= length
    assert len(shown) <= max(length + 4, length)
    assert not text or shown[around - shift] == text[around]


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
        "lang": MetadataField("lang", "choice", ("es", "en")),
        "likes": MetadataField("likes", "number"),
        "date": MetadataField("date", "date"),
        "user": MetadataField("user", "text"),
        "tags": MetadataField("tags", "choice", ("a", "b")),
        "seen": MetadataField("seen", "undated", ("soon",)),
        "Date": MetadataField("Date", "undated", ("0.3.2026",)),
    }
