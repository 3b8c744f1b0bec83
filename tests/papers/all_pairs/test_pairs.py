"""The AST tables: a worked example, loops as an oracle, blocks, ties, thresholds, reading, bad input."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from linker.base.errors import InputError
from linker.papers.all_pairs import evaluate as pairs
from linker.papers.all_pairs.evaluate import evaluate_vectors
from linker.papers.all_pairs.input import read_links, read_vectors
from linker.papers.all_pairs.result import PairEvaluation

S = np.array([[0.9, 0.6, 0.2], [0.1, 0.8, 0.3], [0.95, 0.7, 0.4], [0.5, 0.2, 0.65]]).T  # articles × tweets
LINKS = [(0, 0), (1, 1), (1, 2), (2, 3)]
Flags = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.floating]


def evaluate_scores(scores: npt.ArrayLike, links: npt.ArrayLike, **options: Any) -> PairEvaluation:
    """Evaluate a matrix of scores [articles, tweets], which are the inner products with unit vectors."""
    matrix = np.asarray(scores, np.float32)
    return evaluate_vectors(matrix, np.eye(matrix.shape[1]), links, normalise=False, **options)


def slow_ap(linked: Flags, scores: Scores) -> float:
    """Mean over the links of the precision among all pairs that score at least as much."""
    return float(np.mean([linked[scores >= s].mean() for s in scores[linked]]))


def slow_auc(linked: Flags, scores: Scores) -> float:
    wins = [float(p > n) + 0.5 * float(p == n) for p in scores[linked] for n in scores[~linked]]
    return float(np.mean(wins))


def test_worked_example() -> None:
    r = evaluate_scores(S, LINKS, ranks=(1, 2, 4))
    assert r.precision_at == {1: 0, 2: 0.5, 4: 0.75} and r.mrp == pytest.approx(1.25 / 3)
    assert [r.map_micro, r.map_macro] == pytest.approx([0.679167, 0.833333], abs=1e-6)
    assert [r.auc_micro, r.auc_macro] == pytest.approx([0.875, 0.888889], abs=1e-6)
    assert math.isnan(evaluate_scores(S, LINKS).precision_at[50])  # more than the number of pairs


@pytest.mark.parametrize("seed", range(40))
def test_equals_loops_in_any_blocks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 9)), int(rng.integers(2, 12))
    scores = (rng.integers(0, 6, (n, m)) / 5).astype(rng.choice(["f4", "f8"]))
    linked = rng.random((n, m)) < 0.3
    linked[0, :2] = True, False
    monkeypatch.setattr(pairs, "_BLOCK", int(rng.integers(1, 40)))
    monkeypatch.setattr(pairs, "_FEW", int(rng.integers(0, 4)))
    r = evaluate_scores(scores, np.argwhere(linked))
    assert r.map_micro == pytest.approx(slow_ap(linked.ravel(), scores.ravel()))
    assert r.auc_micro == pytest.approx(slow_auc(linked.ravel(), scores.ravel()))
    some = [i for i in range(n) if linked[i].any()]
    both = [i for i in some if not linked[i].all()]
    assert r.map_macro == pytest.approx(np.mean([slow_ap(linked[i], scores[i]) for i in some]))
    areas = [slow_auc(linked[i], scores[i]) for i in both]
    assert r.auc_macro == pytest.approx(np.mean(areas) if areas else math.nan, nan_ok=True)
    assert (r.articles_without_link, r.articles_without_negative) == (n - len(some), len(some) - len(both))


def test_precision_with_a_tie_at_the_cut_is_the_mean_over_its_orders() -> None:
    scores, links = np.array([[3.0, 2, 2, 2, 1]]), [(0, 1), (0, 4)]
    orders = [[0, *middle, 4] for middle in itertools.permutations((1, 2, 3))]
    for r in (1, 2, 3, 4, 5):
        expected = np.mean([sum(c in (1, 4) for c in order[:r]) / r for order in orders])
        assert evaluate_scores(scores, links, ranks=(r,)).precision_at[r] == pytest.approx(expected)


def test_links_that_are_given_twice_or_all_equal_change_nothing() -> None:
    r = evaluate_scores(np.zeros((10, 10)), [(i, i) for i in range(10)], ranks=(10,))
    assert r.precision_at[10] == pytest.approx(0.1)
    assert [r.map_micro, r.map_macro] == pytest.approx([0.1, 0.1])
    assert (r.auc_micro, r.auc_macro) == (0.5, 0.5)
    twice = np.concatenate((LINKS, LINKS[:1]))
    assert evaluate_scores(S, twice) == evaluate_scores(S, LINKS)


def test_threshold_study() -> None:
    scores = np.r_[np.full(36, 0.7), np.full(10, 0.9), np.full(20, 0.69), np.full(34, 0.1)].astype(
        np.float32
    )[None]
    links = [(0, c) for c in (*range(36), *range(46, 50))]
    (t,) = evaluate_scores(scores, links, ranks=(1,), thresholds=[0.7]).thresholds  # 0.7 itself is accepted
    assert (t.true_positives, t.false_positives, t.false_negatives, t.true_negatives) == (36, 10, 4, 50)
    assert t.precision == pytest.approx(0.7826, abs=1e-4) and t.recall == 0.9
    assert math.isnan(evaluate_scores(scores, links, thresholds=[2]).thresholds[0].precision)


def test_reading_until_links_are_found() -> None:
    one, two, five = evaluate_scores(S, LINKS, until=[1, 2, 5]).until
    assert [one.pairs, one.articles, one.mean_tweets] == pytest.approx([2, 3, 4 / 3])
    assert (two.pairs, two.articles, two.median_tweets) == (3, 1, 2)
    assert (five.pairs, five.articles) == (None, 0) and math.isnan(five.mean_tweets)


@pytest.mark.parametrize("normalise", [True, False])
def test_vectors_equal_their_scores(normalise: bool) -> None:
    rng = np.random.default_rng(0)
    a, t = rng.normal(size=(7, 5)).astype("f4"), rng.normal(size=(9, 5)).astype("f4")
    a[3] = 0
    links = [(i, i) for i in range(7)]
    x, y = (
        v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-9) if normalise else v for v in (a, t)
    )
    got = evaluate_vectors(a, t, links, normalise=normalise, ranks=(3,))
    expected = evaluate_scores(x @ y.T, links, ranks=(3,))
    assert got.precision_at == pytest.approx(expected.precision_at)
    names = ("map_micro", "map_macro", "auc_micro", "auc_macro")
    assert [getattr(got, n) for n in names] == pytest.approx([getattr(expected, n) for n in names])


@pytest.mark.parametrize(
    ("links", "message"),
    [([], "at least one"), ([(0, 9)], "outside"), ([(-1, 0)], "outside"), ([(0.5, 1)], "row numbers")],
)
def test_bad_links(links: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_scores(S, links)


def test_bad_vectors_and_ranks() -> None:
    with pytest.raises(InputError, match="vector 1 holds NaN"):
        evaluate_vectors([[1.0], [np.nan]], [[1.0]], [(0, 0)])
    with pytest.raises(InputError, match="dimensions"):
        evaluate_vectors([[1.0, 2.0]], [[1.0]], [(0, 0)])
    with pytest.raises(InputError, match="positive"):
        evaluate_scores(S, LINKS, ranks=(0,))


def test_files(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.eye(2))
    assert read_vectors(tmp_path / "v.npy").dtype == np.float32
    (tmp_path / "links").write_text("0\t1\n\n1 0\n")
    assert read_links(tmp_path / "links", (2, None), (2, None)).tolist() == [[0, 1], [1, 0]]
    (tmp_path / "ids").write_text("x\ny\n")
    (tmp_path / "named").write_text("y 0\n")
    assert read_links(tmp_path / "named", (2, tmp_path / "ids"), (2, None)).tolist() == [[1, 0]]
    for text, message in (
        ("0 2\n", r"bad:1: '2' is not a known tweet number"),
        ("0\n", "bad:1: 1 column;"),
        ("", "no link"),
    ):
        (tmp_path / "bad").write_text(text)
        with pytest.raises(InputError, match=message):
            read_links(tmp_path / "bad", (2, None), (2, None))
    with pytest.raises(InputError, match="distinct ids"):
        read_links(tmp_path / "named", (3, tmp_path / "ids"), (2, None))
    with pytest.raises(InputError, match="npy matrix"):
        read_vectors(tmp_path / "links")
    np.save(tmp_path / "flat.npy", np.eye(2)[0])
    with pytest.raises(InputError, match=r"\[n, d\]"):
        read_vectors(tmp_path / "flat.npy")


def test_a_matrix_that_is_damaged_or_too_large_is_named(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.eye(2))
    data = (tmp_path / "v.npy").read_bytes()
    (tmp_path / "v.npy").write_bytes(data.replace(b"}", b" "))
    with pytest.raises(InputError, match=r"npy matrix"):
        read_vectors(tmp_path / "v.npy")
    np.save(tmp_path / "v.npy", np.eye(2, dtype=np.float32))
    data = (tmp_path / "v.npy").read_bytes()
    (tmp_path / "v.npy").write_bytes(
        data.replace(b"(2, 2)", b"(%d, 2)" % (1 << 64)).replace(b" " * 19, b"", 1)
    )
    with pytest.raises(InputError, match=r"v\.npy as a \.npy matrix"):
        read_vectors(tmp_path / "v.npy")
