"""The estimate of all relevant documents: against a slow version, at its limits, and on reviews with known truth."""

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.review.interface import Read, TotalEstimate
from linker.review.stopping import by_name, make
from linker.review.stopping.total import LEAST, POWER, QUANTILES, FindHistory
from tests.helpers import ROOT


def told(flags: Sequence[bool]) -> FindHistory:
    finds = FindHistory()
    for flag in flags:
        finds.take(Read(flag))
    return finds


def from_scratch(flags: Sequence[bool], unread: int) -> list[float]:
    """The estimate and its bounds, unrounded, by sums over the whole history."""
    weights = (np.arange(1, len(flags) + 1) / len(flags)) ** POWER
    rate = (weights @ np.array(flags) + 0.5) / (weights.sum() + 1)
    found = sum(flags)
    known = np.array([1, math.log(rate / (1 - rate)), math.log(found)])
    ratios = [math.exp(np.array(quantile) @ known) for quantile in QUANTILES.values()]
    return sorted(found + min(max((found + 1) * ratio - 1, 0), unread) for ratio in ratios)


@given(st.lists(st.booleans(), min_size=1, max_size=300), st.integers(0, 500))
def test_the_estimate_is_what_sums_over_all_reads_make(flags: list[bool], unread: int) -> None:
    total = told(flags).total(unread)
    if sum(flags) < LEAST:
        assert total == (None if unread else TotalEstimate(sum(flags), sum(flags), sum(flags)))
        return
    assert total is not None
    low, likely, high = from_scratch(flags, unread)
    assert low - 1 - 1e-6 <= total.low <= low + 1e-6
    assert abs(total.likely - likely) <= 0.5 + 1e-6
    assert high - 1e-6 <= total.high <= high + 1 + 1e-6
    assert sum(flags) <= total.low <= total.likely <= total.high <= sum(flags) + unread


def test_all_grows_with_finds_and_falls_behind_the_last_one() -> None:
    finds, highs = told([True] * 20), []
    for _ in range(10):
        for _ in range(40):
            finds.take(Read(False))
        total = finds.total(10_000)
        assert total is not None
        highs.append(total.high)
    assert highs == sorted(highs, reverse=True)
    assert highs[-1] < 25 < 40 < highs[0] * 2
    finds.take(Read(True))
    again = finds.total(10_000)
    assert again is not None
    assert again.high > highs[-1]


def test_a_rule_estimates_where_the_order_speaks_alone() -> None:
    reads = [*[Read(True)] * 10, *[Read(False)] * 30]
    rule = make("urn", 1000, 0.9)
    for read in reads:
        rule.update(read)
    total = rule.total
    assert total is not None
    assert total == told([r.relevant for r in reads]).total(960)
    rule.update(Read(False, "search"))  # says nothing about the order
    rule.update(Read(False, "control"))
    assert rule.total == total
    rule.update(Read(True, "audit"))
    more = rule.total
    assert more is not None
    assert more.likely > total.likely
    rule.update(Read(True, "prior"))
    # The order did not begin with this review.
    assert by_name(rule.total) == {"total": None, "total_low": None, "total_high": None}
    assert by_name(total) == {"total": total.likely, "total_low": total.low, "total_high": total.high}


def test_with_everything_read_all_is_known() -> None:
    rule = make("urn", 8, 0.9)
    for flag in (True, False) * 4:
        rule.update(Read(flag))
    assert rule.total == TotalEstimate(4, 4, 4)


@pytest.mark.parametrize(("relevant", "most"), [(30, 15), (100, 7), (400, 3)])
def test_the_interval_holds_where_finds_grow_rare_steadily(relevant: int, most: float) -> None:
    """As in real topics, nearly every read is relevant until half of them are found: after 15, hundreds may be left."""
    covered, widths = [], []
    for seed in range(60):
        chance = np.random.default_rng(seed)
        flags: list[bool] = []
        left = relevant
        while left > relevant / 2:
            flags.append(bool(chance.random() < min(1.6 * left / relevant, 0.9)))
            left -= flags[-1]
        total = told(flags).total(10_000)
        assert total is not None
        covered.append(total.low <= relevant <= total.high)
        widths.append(total.high / relevant)
    assert np.mean(covered) >= 0.9
    assert np.median(widths) < most


def test_the_constants_are_those_that_were_measured() -> None:
    results = json.loads((ROOT / "benchmarks/results/review_total.json").read_text(encoding="utf-8"))[
        "results"
    ]
    measured = {float(name): tuple(values) for name, values in results["constants"].items()}
    assert measured == QUANTILES
