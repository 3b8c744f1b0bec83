"""The table of thresholds, append-only files of entries, and words in scripts with and without spaces."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.scoring.pairs.journal import Journal
from linker.scoring.pairs.thresholds import thresholds
from linker.scoring.pairs.words import count_words, first_words, spaced

SCORES = [1.0, 1.5, 1.5, 2.0, 3.0, 4.0]
MATCHES = [True, True, False, True, False, False]


def test_the_counts_are_those_of_the_pairs_at_or_below() -> None:
    table = thresholds(SCORES, MATCHES, [0.5, 1.0, 1.5, 2.5, 4.0])
    found = [(row.score, row.accepted, row.right) for row in table.rows]
    assert found == [(1.0, 1, 1), (1.5, 3, 2), (2.5, 4, 3), (4.0, 6, 3)]
    assert [row.recall for row in table.rows] == pytest.approx([1 / 3, 2 / 3, 1, 1])
    assert table.best.score == 2.5
    assert table.best.f1 == pytest.approx(2 * 0.75 / 1.75)
    assert table.best.interval == pytest.approx((0.300642, 0.954413), abs=1e-5)  # Wilson (1927), 3 of 4
    assert (table.pairs, table.matches) == (6, 3)


def test_a_precision_chooses_the_highest_threshold_that_has_it() -> None:
    table = thresholds(SCORES, MATCHES, [1.0, 1.5, 2.5, 4.0])
    wanted = table.with_precision(0.7)
    assert wanted is not None
    assert wanted.score == 2.5
    assert thresholds([1.0, 2.0], [False, True], [1.0, 2.0]).with_precision(0.9) is None


@pytest.mark.parametrize("matches", [[True] * 3, [False] * 3])
def test_thresholds_need_both_kinds_of_pairs(matches: list[bool]) -> None:
    with pytest.raises(InputError, match="pairs that match and pairs that do not"):
        thresholds([1, 2, 3], matches, [2])


def test_thresholds_below_all_scores_are_an_error() -> None:
    with pytest.raises(InputError, match=r"every score is above 0\.5"):
        thresholds([1, 2], [True, False], [0.5])


@given(st.lists(st.tuples(st.floats(1, 4), st.booleans()), min_size=2, max_size=30))
def test_a_higher_threshold_accepts_and_finds_no_less(judged: list[tuple[float, bool]]) -> None:
    scores, matches = zip(*judged, strict=True)
    if len(set(matches)) == 1:
        return
    table = thresholds(scores, matches, np.arange(1, 4.01, 0.25).tolist())
    for before, after in zip(table.rows, table.rows[1:], strict=False):
        assert after.accepted >= before.accepted
        assert after.recall >= before.recall
    for row in table.rows:
        assert row.interval[0] <= row.precision <= row.interval[1]
    assert table.rows[-1].accepted == len(scores)


def held(path: Path) -> list[Any]:
    """Return the entries read from the file."""
    found: list[Any] = []
    Journal(path, "words", lambda entry: found.append(entry["word"]))
    return found


@given(words=st.lists(st.text(), min_size=1, max_size=4), data=st.data())
def test_every_beginning_of_a_file_gives_back_its_whole_entries(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("kept") / "words.jsonl"
    Journal(path, "words", lambda entry: None).add({"word": word} for word in words)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    found = held(path)
    # An entry is whole even if only its line end is missing.
    ends = [i for i, byte in enumerate(whole) if byte == ord("\n")]
    assert found == words[: sum(end <= cut for end in ends)]
    assert path.read_bytes() == b"".join(line + b"\n" for line in whole.splitlines()[: len(found)])


@pytest.mark.parametrize("content", ["other", "other\n", '{"word"', '["a"]', '{"key": 1}', "{\n  1"])
def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / "words.jsonl"
    path.write_text(content, encoding="utf-8")
    if content == '{"word"':
        assert held(path) == []
        assert path.read_bytes() == b""
        return
    with pytest.raises(InputError, match="holds no words: name another file for them"):
        held(path)
    assert path.read_text(encoding="utf-8") == content


def test_a_damaged_entry_costs_only_itself_and_a_folder_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "words.jsonl"
    path.write_text('{"word": "a"}\n{"word: 1\n{"other": 1}\n{"word": "b"}\n', encoding="utf-8")
    assert held(path) == ["a", "b"]
    with pytest.raises(InputError, match=r"cannot read .*: Is a directory"):
        held(tmp_path)
    kept = Journal(tmp_path / "new" / "words.jsonl", "words", lambda entry: None)
    (tmp_path / "new").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot write the words file"):
        kept.add([{"word": "a"}])


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
