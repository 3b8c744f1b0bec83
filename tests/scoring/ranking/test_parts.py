"""Dates, comparative features, candidate probabilities: worked numbers and slow oracles."""

import datetime
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.dtypes import AnyArray, BoolArray, Float64Array
from indexes.interface import Document
from indexes.text.features import NAMES
from linker.base.errors import ConfigError
from linker.engine.building import create
from linker.engine.engine import Engine
from linker.scoring.probability.fitting import calibration_error
from linker.scoring.ranking import calibration, candidates
from linker.scoring.ranking.candidates import Pool, PoolSettings, _unique
from linker.scoring.ranking.forest import Forest
from linker.scoring.ranking.groups import names_of, with_group
from linker.scoring.ranking.training import _hide


def day(year: int, month: int, day: int) -> float:
    return float(datetime.date(year, month, day).toordinal())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("26 May 2015", day(2015, 5, 26)),
        ("seen January 14, 2020 and Feb. 3rd 2021", day(2021, 2, 3)),
        ("2020-02-29T12:00:00Z", day(2020, 2, 29)),
        ("1st Sept 2019, then 31 February 2020", day(2019, 9, 1)),
        ("may 2015, 20200101, 2020-13-01, 32 May 2020", math.nan),
        ("", math.nan),
    ],
)
def test_the_last_date_of_a_text(text: str, expected: float) -> None:
    assert candidates.day_of(text) == pytest.approx(expected, nan_ok=True)


def test_a_documents_date_is_a_text_in_its_field_and_settings_are_checked() -> None:
    assert candidates.document_day({"date": "26 May 2015"}, "date") == day(2015, 5, 26)
    for metadata in ({}, {"date": 5}, {"date": ["26 May 2015"]}, {"other": "26 May 2015"}):
        assert math.isnan(candidates.document_day(metadata, "date"))
    for wrong in ({"direction": "later"}, {"bm25": 0}, {"dense": -1}, {"dated": 201}):
        with pytest.raises(ConfigError):
            PoolSettings(**wrong)
    assert PoolSettings(date_field="d").names(encoder=True) == (
        *NAMES,
        "cosine",
        "days",
        "days_apart",
        "days_wrong",
    )


def test_worked_comparisons() -> None:
    names = ("coverage", "query_words")
    features = np.array([[[1, 7], [3, 7], [0, 0]], [[5, 2], [0, 0], [0, 0]]], dtype=np.float32)
    valid = np.array([[True, True, False], [True, False, False]])
    assert names_of(names) == (
        *names,
        "behind.coverage",
        "share.coverage",
        "rank.coverage",
        "margin.coverage",
    )
    found = with_group(features, valid, names)
    assert found[0, :2].tolist() == [[1, 7, -2, 0, 1, 2], [3, 7, 0, 1, 0, 2]]
    assert found[1, 0].tolist() == [5, 2, 0, 0, 0, 0]
    assert np.isfinite(found).all()


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(-1, 5), min_size=4, max_size=4), min_size=1, max_size=5))
def test_candidates_are_unique_and_in_order(rows: list[list[int]]) -> None:
    found = _unique(np.array(rows))
    for line, before in zip(found.tolist(), rows, strict=True):
        assert [r for r in line if r >= 0] == list(dict.fromkeys(r for r in before if r >= 0))


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.integers(-1, 9), min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=5),
)
def test_links_among_candidates(rows: list[list[int]], links: list[tuple[int, int]]) -> None:
    found = candidates.relevant_of(np.array(rows), np.array(links))
    assert found.tolist() == [[(n, row) in links for row in line] for n, line in enumerate(rows)]


@pytest.mark.parametrize(
    ("ranks", "depth"), [([0] * 99 + [79], 30), ([0] * 9 + [45], 50), ([5, 79], 80), ([5, 95], 30)]
)
def test_candidates_are_as_many_as_the_known_links_need(
    ranks: list[int], depth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BM25 ranks 100 one-word documents by length; the texts' documents have these ranks."""
    create(tmp_path / "index", positions=True)
    with Engine(tmp_path / "index") as engine:
        engine.add(Document(str(i), "word" + " filler" * i) for i in range(100))
        links = np.array(list(enumerate(ranks)))
        base = PoolSettings(bm25=30, dense=7)
        for sample in (1000, 60):  # every second of 100 texts, without the last
            monkeypatch.setattr(candidates, "SAMPLE", sample)
            found = candidates.deep_enough(engine.collection.ranking(), ["word"] * len(ranks), links, base)
            assert found == PoolSettings(bm25=depth, dense=7)


CANDIDATES, AHEAD = 15, 3.0


def world(linked: float, seed: int, queries: int = 4000) -> tuple[Float64Array, BoolArray]:
    """Return scores [n, c] and which candidates are relevant: N(AHEAD, 1), if there is one, among N(0, 1)."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=(queries, CANDIDATES))
    relevant = random.integers(CANDIDATES, size=queries)[:, None] == np.arange(CANDIDATES)
    relevant &= random.random(queries)[:, None] < linked
    return scores + AHEAD * relevant, relevant


def asked(fitted: calibration.ListCalibration, scores: Float64Array) -> tuple[Float64Array, Float64Array]:
    valid, features = np.ones(scores.shape, dtype=bool), np.zeros((*scores.shape, 1), dtype=np.float32)
    return fitted.probabilities(scores, valid, features, ("other",))


def learned(linked: float) -> calibration.ListCalibration:
    scores, relevant = world(linked, seed=0)
    valid, features = np.ones(scores.shape, dtype=bool), np.zeros((*scores.shape, 1), dtype=np.float32)
    return calibration.fit(scores, scores, valid, relevant, features, ("other",))


def test_probabilities_are_calibrated() -> None:
    """By Bayes' rule, P(link j) is proportional to .7 ÷ 15 · exp(3 s − 4.5), and P(none) to .3."""
    fitted = learned(0.7)
    scores, relevant = world(0.7, seed=1)
    links, none = asked(fitted, scores)
    assert fitted.slope == pytest.approx(AHEAD, abs=0.15)
    assert fitted.linked == pytest.approx(0.7, abs=0.02)
    np.testing.assert_allclose(links.sum(axis=1) + none, 1)
    odds = 0.7 / CANDIDATES * np.exp(AHEAD * scores - AHEAD**2 / 2)
    exact = 0.3 / (0.3 + odds.sum(axis=1))
    assert np.abs(none - exact).mean() < 0.03
    assert calibration_error(links.max(axis=1), relevant[np.arange(len(links)), links.argmax(axis=1)]) < 0.03


@pytest.mark.parametrize("linked", [1.0, 0.5, 0.1])
def test_absence_is_learned_where_no_judged_query_lacked_its_document(linked: float) -> None:
    """Every judged query has a match; of the new queries, only the share `linked` has one."""
    fitted = learned(1.0)
    scores, relevant = world(linked, seed=2, queries=1000)
    links, none = asked(fitted, scores)
    together = fitted.together(none)
    first = links.argmax(axis=1)
    right, said = relevant[np.arange(len(links)), first], links[np.arange(len(links)), first]
    assert calibration_error(said * (1 - together) / (1 - none), right) < 0.04
    assert linked == 1 or calibration_error(said, right) > 0.1


def test_another_share_changes_the_odds_of_a_match_by_its_own() -> None:
    scores, relevant = world(0.7, seed=0, queries=500)
    valid, features = np.ones(scores.shape, dtype=bool), np.zeros((*scores.shape, 1), dtype=np.float32)
    own, half = (
        calibration.fit(scores, scores, valid, relevant, features, ("other",), share) for share in (None, 0.5)
    )
    (_, before), (_, after) = asked(own, scores), asked(half, scores)
    assert own.linked is not None and half.linked == 0.5
    np.testing.assert_allclose((1 / before - 1) / (1 / after - 1), own.linked / (1 - own.linked))


@given(st.lists(st.floats(0, 1), max_size=99).map(np.array), st.sampled_from([None, 0.01, 0.5, 0.99]))
def test_queries_asked_together_keep_their_order(none: Float64Array, linked: float | None) -> None:
    fitted = calibration.ListCalibration(("best",), 1.0, (0.0, 0.0), (0.0,), (1.0,), linked)
    found = fitted.together(none)
    if linked is None:
        np.testing.assert_array_equal(found, none)
    if len(none) == 1:
        np.testing.assert_allclose(found, none, atol=1e-8)
    assert ((found >= 0) & (found <= 1)).all() and (found[none == 1] == 1).all()
    assert (np.diff(found[np.argsort(none)]) >= -1e-12).all()


@dataclass(frozen=True, eq=False)
class Column(Forest):
    """The value of one feature, in place of trees."""

    place: int

    def scores(self, x: AnyArray) -> Float64Array:
        return np.asarray(x[:, self.place], dtype=np.float64)


def test_hidden_documents_are_scored_as_if_they_had_never_been_found() -> None:
    """Each list without its relevant candidates, scored by its fold's trees, against pools that never held them."""
    random = np.random.default_rng(0)
    rows = np.tile(np.arange(4), (6, 1))
    relevant = random.random(rows.shape) < 0.3
    pool = Pool(rows, random.normal(size=(6, 4, 2)).astype(np.float32), ("bm25", "coverage"))
    names = names_of(pool.names)
    forests = [Column(names, (), names.index(name)) for name in ("margin.bm25", "rank.coverage")]
    fold = np.array([0, 1, 0, 1, 0, 1])
    found = _hide(pool, relevant, fold, forests)
    assert (found[relevant] == -np.inf).all()
    for query in range(6):
        here = ~relevant[query]
        features = pool.features[query : query + 1, here]
        told = with_group(features, np.ones((1, int(here.sum())), dtype=bool), pool.names)[0]
        column = names.index(("margin.bm25", "rank.coverage")[fold[query]])
        np.testing.assert_allclose(found[query, here], told[:, column])


def test_without_candidates_there_is_no_match_and_nothing_is_adapted() -> None:
    fitted = calibration.ListCalibration(("best", "lead"), 1.0, (0.0, 0.0, 0.0), (0.0, 0.0), (1.0, 1.0))
    scores, features = np.zeros((2, 2)), np.zeros((2, 2, 1), dtype=np.float32)
    valid = np.array([[False, False], [True, False]])
    links, none = fitted.probabilities(scores, valid, features, ("a",))
    assert none.tolist() == [1, 0.5]
    assert links.tolist() == [[0, 0], [0.5, 0]]
    none = np.append(np.full(50, 0.9), 1.0)
    fitted = calibration.ListCalibration(("best",), 1.0, (0.0, 0.0), (0.0,), (1.0,), 0.5)
    found = fitted.together(none)
    assert found[-1] == 1 and (found[:-1] > 0.95).all()
    before = calibration.ListCalibration(("best",), 1.0, (0.0, 0.0), (0.0,), (1.0,))
    np.testing.assert_array_equal(before.together(none), none)
