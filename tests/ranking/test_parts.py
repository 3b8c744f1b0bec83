"""Dates, comparing features, candidates' probabilities: worked numbers and slow oracles."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.text.features import NAMES
from linker.errors import ConfigError
from linker.ranking import calibration, dates
from linker.ranking.candidates import PoolSettings, _unique
from linker.ranking.groups import names_of, with_group


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
    assert dates.day_of(text) == pytest.approx(expected, nan_ok=True)


def test_a_documents_date_is_a_text_in_its_field() -> None:
    assert dates.document_day({"date": "26 May 2015"}, "date") == day(2015, 5, 26)
    for metadata in ({}, {"date": 5}, {"date": ["26 May 2015"]}, {"other": "26 May 2015"}):
        assert math.isnan(dates.document_day(metadata, "date"))


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


def test_settings_are_checked() -> None:
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


def test_probabilities_are_calibrated() -> None:
    """Scores s of 3 candidates with P(link j) = 0.7 · softmax(2 s): the fit finds the slope, and the share without."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4000, 3))
    chances = np.exp(2 * scores)
    chances /= chances.sum(axis=1, keepdims=True)
    right = np.array([rng.choice(3, p=p) for p in chances])
    relevant = (right[:, None] == np.arange(3)) & (rng.random(4000) < 0.7)[:, None]
    valid, features = np.ones((4000, 3), dtype=bool), np.zeros((4000, 3, 1), dtype=np.float32)
    fitted = calibration.fit(scores, valid, relevant, features, ("other",))
    assert fitted.slope == pytest.approx(2, abs=0.15)
    links, none = fitted.probabilities(scores, valid, features, ("other",))
    assert none.mean() == pytest.approx(0.3, abs=0.02)
    np.testing.assert_allclose(links.sum(axis=1) + none, 1)
    # Of the links that are said to be as probable as p, the share p is right.
    for low in (0.0, 0.2, 0.4, 0.6):
        here = (links >= low) & (links < low + 0.2)
        assert relevant[here].mean() == pytest.approx(links[here].mean(), abs=0.04)


def test_a_query_without_candidates_has_no_match() -> None:
    fitted = calibration.Calibration(("best", "lead"), 1.0, (0.0, 0.0, 0.0), (0.0, 0.0), (1.0, 1.0))
    scores, features = np.zeros((2, 2)), np.zeros((2, 2, 1), dtype=np.float32)
    valid = np.array([[False, False], [True, False]])
    links, none = fitted.probabilities(scores, valid, features, ("a",))
    assert none.tolist() == [1, 0.5]
    assert links.tolist() == [[0, 0], [0.5, 0]]
