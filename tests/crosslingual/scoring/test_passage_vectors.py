"""Scores of page pairs from vectors of their passages, compared with loops over the passages."""

import time
from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse as sp

from indexes.arrays import normalised
from indexes.dtypes import Float32Array
from linker.crosslingual.aligned.aligning import PassageCosts
from linker.crosslingual.by_passages import PassageScores, by_votes, unite
from linker.crosslingual.pages.pages import count_terms
from linker.crosslingual.pages.surface import letter_grams, mark_grams, romanise
from linker.crosslingual.scoring.alignment import align, least_costs
from linker.crosslingual.scoring.candidates import Candidates
from linker.crosslingual.scoring.passage_vectors import PassageVectors, cosines_of, extents, passages
from linker.crosslingual.scoring.passages import PassageMatcher, cut_passages, match_passages, passages_of
from tests.crosslingual.tiny import neighbours

SIZES = ((3, 1, 0, 5), (4, 0, 2, 6, 1))  # passages of each page


def random_passages(sizes: tuple[int, ...], seed: int) -> PassageVectors:
    vectors = normalised(np.random.default_rng(seed).normal(size=(sum(sizes), 6)).astype(np.float32) + 0.5)
    return PassageVectors(vectors, extents([[""] * size for size in sizes]))


def rows_of(collection: PassageVectors, page: int) -> Float32Array:
    begin, end = collection.begin[page : page + 2].tolist()
    part = collection.vectors[begin:end]
    return part if isinstance(part, np.ndarray) else part.toarray()


@pytest.fixture(params=["dense", "sparse"])
def costs(request: pytest.FixtureRequest) -> PassageCosts:
    both = [random_passages(size, seed) for seed, size in enumerate(SIZES)]
    if request.param == "sparse":
        both = [PassageVectors(sp.csr_array(part.vectors), part.begin) for part in both]
    return PassageCosts(both[0], both[1], 0.4)


def slow_distance(joined: Float32Array, others: Float32Array) -> float:
    total = joined.sum(axis=0)
    return float(np.mean([1 - total @ other / np.linalg.norm(total) for other in others]))


def test_costs_are_those_of_thompson_and_koehn_for_every_window(costs: PassageCosts) -> None:
    all_source, all_target = (
        np.concatenate([rows_of(c, page) for page in range(len(c.begin) - 1)])
        for c in (costs.source, costs.target)
    )
    columns = np.array([3, 0, 4])
    between = costs.between(3, *cosines_of(costs.source, costs.target, 3, columns))
    x = rows_of(costs.source, 3)
    for (a, b), values in between.moves.items():
        for k, column in enumerate(columns.tolist()):
            y = rows_of(costs.target, column)
            for i, j in product(range(values.shape[1]), range(values.shape[2])):
                if j + b > len(y):
                    assert values[k, i, j] == np.inf
                    continue
                left, right = x[i : i + a].sum(axis=0), y[j : j + b].sum(axis=0)
                cosine = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
                typical = slow_distance(x[i : i + a], all_target) + slow_distance(y[j : j + b], all_source)
                assert values[k, i, j] == pytest.approx(2 * a * b * (1 - cosine) / typical, abs=1e-4)


def slow_path(gains: Float32Array) -> float:
    """The maximum sum over all ways to link as many of the first passages as possible in order."""
    n, m = gains.shape
    return max(
        float(sum(gains[i, j] for i, j in zip(left, right, strict=True)))
        for size in range(min(n, m) + 1)
        for left in combinations(range(n), size)
        for right in combinations(range(m), size)
    )


def test_scores_are_those_of_each_pair_alone(costs: PassageCosts) -> None:
    rng = np.random.default_rng(5)
    forward = rng.uniform(0.5, 0.9, sum(SIZES[0])).astype(np.float32)
    backward = rng.uniform(0.5, 0.9, sum(SIZES[1])).astype(np.float32)
    scores = PassageScores(costs.source, costs.target, forward, backward)
    candidates = np.array([[3, 0, -1, 1, 4]] * len(SIZES[0]))
    found = scores.features(np.arange(len(SIZES[0])), candidates)
    for row, k in product(range(len(SIZES[0])), range(candidates.shape[1])):
        column = int(candidates[row, k])
        x, y = rows_of(costs.source, row), rows_of(costs.target, max(column, 0))
        if column < 0 or not len(x) or not len(y):
            assert not found[row, k].any()
            continue
        f = forward[costs.source.begin[row] :][: len(x)]
        b = backward[costs.target.begin[column] :][: len(y)]
        margins = x @ y.T / ((f[:, None] + b) / 2)
        both = [np.mean(np.maximum(margins, 0).max(axis=axis) ** 5) ** (1 / 5) for axis in (0, 1)]
        aligned = slow_path(np.maximum(margins, 0) ** 4) / (len(x) + len(y)) ** 0.5
        best = max(0, margins.max())
        assert found[row, k] == pytest.approx([best, (both[0] * both[1]) ** 0.5, aligned], abs=1e-4)


def test_equal_pages_align_one_to_one() -> None:
    # Orthogonal passages: if two are equal, linking each to its copy costs nothing.
    same = PassageVectors(np.eye(5, dtype=np.float32), np.array([0, 5]))
    costs = PassageCosts(same, same, 0.4)
    between = costs.between(0, *cosines_of(costs.source, costs.target, 0, np.array([0])))
    alone = type(between)(
        {move: values[0] for move, values in between.moves.items()},
        between.source_skips[0],
        between.target_skips[0],
    )
    beads = align(alone)
    assert [(bead.source, bead.target) for bead in beads] == [
        (range(i, i + 1), range(i, i + 1)) for i in range(5)
    ]
    scores = PassageScores(same, same, np.ones(5, np.float32), np.ones(5, np.float32))
    # Five margins of 1 on the path, divided by the root of ten passages.
    assert scores.features(np.array([0]), np.array([[0]]))[0, 0].tolist() == pytest.approx(
        [1, 1, 5 / 10**0.5]
    )


def test_alignment_does_not_depend_on_which_page_is_the_source(costs: PassageCosts) -> None:
    turned = PassageCosts(costs.target, costs.source, costs.skip)
    one = least_costs(costs.between(3, *cosines_of(costs.source, costs.target, 3, np.array([0]))))
    other = least_costs(turned.between(0, *cosines_of(turned.source, turned.target, 0, np.array([3]))))
    assert np.allclose(one[0], other[0].T, atol=1e-5)


def test_votes_by_hand() -> None:
    """Page 0 has two passages, page 1 one; likewise the targets."""
    source = PassageVectors(np.eye(3, dtype=np.float32), np.array([0, 2, 3]))
    target = PassageVectors(np.eye(3, dtype=np.float32), np.array([0, 2, 3]))
    # Passage 0 votes once for page 0, with 1.2, though both its passages are near, and for page 1 with 0.9.
    none = -np.inf
    cosines = np.array([[0.6, 0.5, 0.45], [0.5, none, none], [0.6, 0.4, none]], np.float32)
    candidates = Candidates(np.array([[0, 1, 2], [2, -1, -1], [2, 0, -1]]), cosines)
    near = neighbours(candidates, [0.5] * 3, [0.5] * 3)
    found = by_votes(near, source, target, ("a", "b"), ("x", "y"))
    assert found.targets[:, :2].tolist() == [[0, 1], [1, 0]]
    assert found.scores[:, :2] == pytest.approx(np.array([[1.2**8, 0.9**8 + 1], [1.2**8, 0.8**8]]), rel=1e-5)


def test_candidates_of_two_lists_appear_once() -> None:
    first, second = (
        Candidates(np.array(targets), np.ones((2, 2), np.float32))
        for targets in ([[3, 1], [0, -1]], [[1, 2], [4, 0]])
    )
    assert unite(first, second).tolist() == [[3, 1, -1, 2], [0, -1, 4, -1]]


def test_passages_keep_lines_together() -> None:
    long = "word " * 100
    text = f"Title\n\nA short line.\n{'x' * 99}\n{'y' * 101}\n{long}"
    parts = passages(text)
    assert parts[0] == f"Title A short line. {'x' * 99}"
    assert parts[1] == "y" * 101
    assert " ".join(parts).split() == text.split()
    assert all(len(part) <= 300 for part in parts)
    assert passages(" \n ") == []
    assert passages("字" * 80) == ["字" * 75, "字" * 5]


def test_passages_follow_lines() -> None:
    line = "a b c d e f g h i j"
    assert [len(p) for p in cut_passages("\n".join([line] * 7), str.split)] == [30, 30, 10]
    assert [len(p) for p in cut_passages(" ".join(["w"] * 100), str.split)] == [30, 30, 40]
    assert cut_passages("", str.split) == [[]]
    everything = [w for p in cut_passages(f"{line}\n{line * 9}\n\nx", str.split) for w in p]
    assert everything == f"{line} {line * 9} x".split()


def test_a_huge_line_is_cut_in_linear_time() -> None:
    line = " ".join(["w"] * 1_000_000)
    before = time.process_time()
    assert len(cut_passages(line, str.split)) == 33_333
    assert time.process_time() - before < 5


def test_features_are_the_best_cosines_of_passages() -> None:
    a, b, c = (" ".join(f"{x}{i}" for i in range(30)) for x in "abc")
    sources, targets = [f"{a}\n{b}", ""], [f"{c}\n{b}", f"{a}\n{b}", c, ""]
    x, y = count_terms(sources, str.split), count_terms(targets, str.split)
    translations = sp.lil_array((len(x.vocabulary), len(y.vocabulary)), dtype=np.float32)
    for term, i in x.position.items():
        if term in y.position:
            translations[i, y.position[term]] = 1
    sides = passages_of(sources, str.split, x), passages_of(targets, str.split, y)
    matcher = match_passages(*sides, sp.csr_array(translations))
    found = matcher.features(np.array([0, 1]), np.array([[0, 1, 2, 3], [3, 2, 1, 0]]))
    assert matcher.names[:2] == ("passages.mean", "passages.best")
    np.testing.assert_allclose(found[0, 1], 1, atol=1e-5)  # both passages are present
    assert found[0, 0, 1] == pytest.approx(1, abs=1e-5)  # one is present
    assert 0 < found[0, 0, 0] < 1
    np.testing.assert_allclose(found[0, 2:], 0)
    np.testing.assert_allclose(found[1], 0)  # an empty page has nothing in common with any


def test_names_are_romanised() -> None:
    assert romanise("Пушкин") == "pushkin"
    assert romanise("Şırnak, Müller, Ωmega") == "sirnak, muller, omega"
    assert "_pus" in letter_grams("Пушкин") and "_pus" in letter_grams("Pushkin")
    assert letter_grams("你好 ab 12345") == []


def test_marks_survive_translation() -> None:
    assert mark_grams("a, b。") == [",", ".", ",."]
    assert mark_grams("foo (12)\n") == mark_grams("бар （12）\n")


def test_many_pages_together_have_the_features_of_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i:02}" for i in range(40)]

    def pages(n: int) -> list[str]:
        return [
            "\n".join(" ".join(rng.choice(words, 35)) for _ in range(rng.integers(1, 9))) for _ in range(n)
        ]

    x, y = (passages_of(side, str.split, count_terms(side, str.split)) for side in (pages(7), pages(9)))
    matcher = match_passages(x, y, sp.csr_array((rng.random((40, 40)) < 0.1).astype(np.float32)))
    rows, candidates = np.array([3, 0, 6, 2, 5]), rng.permuted(np.tile(np.arange(9), (5, 1)), axis=1)[:, :4]
    monkeypatch.setattr("linker.crosslingual.scoring.passages.PAGES", 2)
    found = matcher.features(rows, candidates)
    for i, row in enumerate(rows.tolist()):
        for j, column in enumerate(candidates[i].tolist()):
            np.testing.assert_allclose(found[i, j], one_pair(matcher, row, column), rtol=1e-5, atol=1e-6)


def one_pair(matcher: PassageMatcher, row: int, column: int) -> list[float]:
    x, y = matcher.source, matcher.target
    mine, theirs = slice(*x.begin[row : row + 2]), slice(*y.begin[column : column + 2])
    translated = (x.present[mine] @ matcher.shares).toarray() * y.weights
    translated /= np.maximum(np.linalg.norm(translated, axis=1, keepdims=True), 1e-12)
    cosines = translated @ y.vectors[theirs].toarray().T
    best, back = np.sort(cosines.max(axis=1))[::-1], np.sort(cosines.max(axis=0))[::-1]
    forward = np.average(cosines.max(axis=1), weights=matcher.source_mass[mine])
    backward = np.average(cosines.max(axis=0), weights=matcher.target_mass[theirs])
    third, back_third = best[: max(1, len(best) // 3)].mean(), back[: max(1, len(back) // 3)].mean()
    return [forward, best[0], best[:3].mean(), third, backward, back_third]
