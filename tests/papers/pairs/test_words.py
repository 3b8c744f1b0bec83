"""Words in scripts with and without spaces."""

from hypothesis import given
from hypothesis import strategies as st

from linker.scoring.pairs.words import count_words, first_words, spaced


def test_words_by_hand() -> None:
    assert count_words("Two words, one dash – and 3") == 7
    assert count_words("北京时间，今天公布 GDP") == 2 + 2 + 1
    assert count_words("，。 ") == 1  # like a dash: a token between spaces
    assert count_words("") == 0
    assert first_words("北京时间，今天公布", 2) == "北京时间，"
    assert first_words("  a  b c ", 2) == "a b"
    assert first_words("  a  b c ", 9) == "a b c"
    assert spaced("国家统计GDP 新") == " 国家 家统 统计 GDP  新 "


@given(st.text(st.characters(exclude_categories=["Lo", "Lm", "Nl"])), st.integers(1, 6))
def test_without_han_and_kana_words_are_what_stands_between_spaces(text: str, count: int) -> None:
    assert count_words(text) == len(text.split())
    assert first_words(text, count) == " ".join(text.split()[:count])


@given(st.text("国家统计 a1，", max_size=20), st.integers(1, 6))
def test_the_first_words_are_the_beginning_and_as_many_as_were_asked_for(text: str, count: int) -> None:
    first = first_words(text, count)
    assert " ".join(text.split()).startswith(first)
    assert count_words(first) == min(count, count_words(text))
