"""Reading pairs of articles, the scale of their scores, and skipped pairs."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.base.errors import InputError
from linker.papers.news.articles import (
    Article,
    NewsPair,
    keep_long,
    read_news,
    scores_of,
    similarity,
    targets,
)
from tests.papers.pairs.news.news_data import news, write


def test_the_scale_is_turned_and_brought_to_the_unit_interval() -> None:
    assert [similarity(x) for x in (1.0, 2.5, 4.0)] == [1.0, 0.5, 0.0]
    assert scores_of(np.array([1.0, 0.5, 0.0, 1.2, -0.3])).tolist() == [1.0, 2.5, 4.0, 1.0, 4.0]


@given(st.floats(1, 4))
def test_scores_come_back(score: float) -> None:
    assert scores_of(np.array([similarity(score)]))[0] == pytest.approx(score)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    pairs = news(5)
    path = write(tmp_path / "pairs.jsonl", pairs)
    assert read_news(path) == pairs
    packed = tmp_path / "pairs.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_news(packed) == pairs
    assert pairs[0].kind == "en-en"


def test_a_headline_is_the_title_or_the_beginning_of_the_first_line() -> None:
    assert Article("Body.", " Title ").headline == "Title"
    assert Article("First line\nsecond line").headline == "First line"
    assert Article(" ".join(map(str, range(40)))).headline == " ".join(map(str, range(15)))
    assert Article("text", "title").full == "title text"


def test_pairs_that_cannot_be_scored_are_counted_by_words_in_chinese_too() -> None:
    long, short = Article("word " * 10), Article("word " * 9)
    pairs = [
        NewsPair("a", long, long, 1.0),
        NewsPair("b", long, Article(" "), 1.0),
        NewsPair("c", short, long, 1.0),
    ]
    kept = keep_long(pairs)
    assert ([p.id for p in kept.pairs], kept.empty, kept.short) == (["a"], ("b",), ("c",))
    assert "1 pairs are used" in kept.remark
    assert "1 with an empty article, 1 with an article of fewer than 10 words" in kept.remark
    assert not keep_long(pairs[:1]).remark
    long, short = (Article("国家统计局今天公布了第三季度的数据" * n, "", "zh") for n in (2, 1))
    assert long.headline == short.headline + long.text[len(short.text) : 30]
    kept = keep_long([NewsPair("a", long, long, 1.0), NewsPair("b", long, short, 1.0)])
    assert ([p.id for p in kept.pairs], kept.short) == (["a"], ("b",))


GOOD = {"text1": "one", "text2": "two", "overall": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text2": None}, "one article is missing: there is no text2"),
        ({"text1": 7}, "text1 is int, not a string"),
        ({"overall": 4.5}, "the score 4.5 is outside 1–4"),
        ({"overall": 0}, "the score 0 is outside 1–4"),
        ({"overall": "much"}, "the score 'much' is not a number"),
        ({"overall": float("nan")}, "no score"),  # JSON writes it as null
        ({"overall": None}, "no score: add a field overall"),
    ],
)
def test_bad_pair_is_named_by_file_and_line(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = tmp_path / "pairs.jsonl"
    bad = json.dumps(GOOD | change).replace("NaN", "null")
    path.write_text(f"{json.dumps(GOOD)}\n\n{bad}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message) as error:
        read_news(path)
    assert str(error.value).startswith(f"{path}:3: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "is empty"), ("[1]\n", ":1: a JSON list"), ("{\n", ":1: not JSON"),
     ('{"_id": "x", "text1": "a", "text2": "b", "score": 1}\n' * 2, ":2: the id 'x' appears twice")],
)  # fmt: skip
def test_a_file_that_holds_no_pairs(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_news(path)


def test_pairs_without_a_score_can_be_predicted_but_not_learned(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"text1": "a", "text2": "b"}\n', encoding="utf-8")
    (pair,) = read_news(path, graded=False)
    assert pair.score is None
    with pytest.raises(InputError, match="no score"):
        targets([pair])
