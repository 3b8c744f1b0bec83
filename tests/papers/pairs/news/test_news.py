"""Reading pairs of articles and their scores; overlap and the fusion network against scikit-learn's."""

import dataclasses
import gzip
import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neural_network import MLPRegressor

from linker.base.errors import InputError
from linker.papers.news import overlap
from linker.papers.news.articles import (
    Article,
    NewsPair,
    keep_long,
    read_news,
    scores_of,
    similarity,
    targets,
)
from linker.papers.news.fusion import FusionConfig, FusionNetwork, fit_fusion
from linker.papers.news.overlap import Overlap, tokens
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
    [("", "is empty"), ("[1]\n", ":1: a JSON array"), ("{\n", ":1: not JSON"),
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


FIRST = ["Ships left the port of London at 10:30 with 1,200 tons", "Nothing in common", "no numbers"]
SECOND = ["The port said London ships, 1,200 of them, left", "Completely different words 7", ""]


def test_tokens_are_stems_names_and_numbers() -> None:
    words, names, numbers = tokens("The ships, Maersk said, leave London London at 10:30")
    assert words == {"the": 1, "ships": 1, "maers": 1, "said": 1, "leave": 1, "londo": 2, "at": 1}
    assert names == {"maersk": 1, "london": 2}
    assert numbers == {"10:30": 1}


def test_cosines_are_those_of_tf_idf() -> None:
    found = Overlap.fit([*FIRST, *SECOND]).cosines(FIRST, SECOND)
    for row in range(3):
        oracle = TfidfVectorizer(
            analyzer=lambda text, row=row: list(tokens(text)[row].elements()), sublinear_tf=True
        )
        oracle.fit([*FIRST, *SECOND])
        expected = oracle.transform(FIRST).multiply(oracle.transform(SECOND)).sum(axis=1)
        assert found[:, row] == pytest.approx(np.asarray(expected).ravel())
    assert found[0, 2] > 0
    assert found[2].tolist() == [0, 0, 0]


def test_the_worked_weight() -> None:
    """A word that occurs twice here and in one of two texts: (1 + ln 2)(1 + ln(3/2))."""
    weights = Overlap.fit(["storm storm", "rain"])._weights(0, tokens("storm storm")[0])
    assert weights == {"storm": pytest.approx((1 + math.log(2)) * (1 + math.log(3 / 2)))}
    assert overlap._bucket("storm") < overlap.BUCKETS


def data(count: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = rng.random((count, 5)) * [1, 10, 0.1, 1, 2]
    features[:, 2] = 0.3  # a constant feature
    return features, (features[:, 0] + features[:, 1] / 10) / 2


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_arrays_predict_what_the_network_does(solver: str) -> None:
    features, gold = data()
    config = FusionConfig(solver="adam" if solver == "adam" else "lbfgs", epochs=30, seed=3)
    found = fit_fusion(features, gold, config)
    scale = np.where(features.std(axis=0) > 1e-12, features.std(axis=0), 1)
    network = MLPRegressor(
        hidden_layer_sizes=(32,), activation="logistic", solver=solver, learning_rate_init=1e-3, alpha=1e-4,
        max_iter=30, random_state=3,
    )  # fmt: skip
    standard = (features - features.mean(axis=0)) / scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(standard, gold)
    assert found.predict(features) == pytest.approx(network.predict(standard).clip(0, 1))


@pytest.mark.parametrize("output", ["linear", "sigmoid"])
def test_it_learns_and_members_are_averaged(output: str) -> None:
    features, gold = data()
    config = FusionConfig(output="sigmoid" if output == "sigmoid" else "linear", solver="lbfgs", members=3)
    fusion = fit_fusion(features, gold, config)
    assert np.corrcoef(fusion.predict(features), gold)[0, 1] > 0.99
    assert fusion.hidden.shape == (3, 5, 32)
    parts = [
        FusionNetwork.of_tensors(
            {
                name: array if name in ("mean", "scale") else array[[m]]
                for name, array in fusion.tensors().items()
            },
            output,
        )
        for m in range(3)
    ]
    inside = (fusion.predict(features) > 0) & (fusion.predict(features) < 1)
    mean = np.mean([part.predict(features) for part in parts], axis=0)
    assert inside.sum() > 60
    assert fusion.predict(features)[inside] == pytest.approx(mean[inside], abs=0.02)
    again = FusionNetwork.of_tensors(fusion.tensors(), output)
    assert again.predict(features).tolist() == fusion.predict(features).tolist()


def test_the_worked_forward_pass_and_the_mean_of_the_members() -> None:
    """One feature 3 with mean 1, scale 2 → 1; hidden logistic(1·ln 3) = .75; out .75·2 − 1 = .5."""
    one = np.array
    fusion = FusionNetwork(
        one([1.0]), one([2.0]), one([[[math.log(3)]]]), one([[0.0]]), one([[2.0]]), one([-1.0]), "linear"
    )
    assert fusion.predict(one([[3.0]])) == pytest.approx([0.5])
    sigmoid = dataclasses.replace(fusion, output="sigmoid")
    assert sigmoid.predict(one([[3.0]])) == pytest.approx([1 / (1 + math.exp(-0.5))])
    nothing = np.zeros((2, 1, 1))
    biases = np.array([0.2, 0.6])  # the only output of these members
    fusion = FusionNetwork(
        np.zeros(1), np.ones(1), nothing, np.zeros((2, 1)), np.zeros((2, 1)), biases, "linear"
    )
    assert fusion.predict(np.array([[1.0], [7.0]])) == pytest.approx([0.4, 0.4])
