"""Learn then Test: worked numbers, an exact binomial oracle, and the promise itself on simulated links."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.scoring.probability.promise import DELTA, FEWEST, promise, tail


@pytest.mark.parametrize(
    ("links", "right", "p"), [(29, 29, 0.0471), (46, 45, 0.0480), (61, 59, 0.0491), (500, 462, 0.0393)]
)
def test_links_that_pass(links: int, right: int, p: float) -> None:
    assert tail(links, right, 0.9) == pytest.approx(p, abs=5e-5)
    assert tail(links, right, 0.9) <= DELTA < tail(links, right - 1, 0.9)


@pytest.mark.parametrize(("links", "right", "p"), [(28, 28, 0.0523), (100, 95, 0.0576), (200, 187, 0.0566)])
def test_links_that_fail(links: int, right: int, p: float) -> None:
    assert tail(links, right, 0.9) == pytest.approx(p, abs=5e-5)
    assert tail(links, right, 0.9) > DELTA


@given(st.integers(1, 60), st.data(), st.sampled_from([0.5, 0.8, 0.9, 0.99]))
def test_the_tail_is_the_sum_of_its_terms(links: int, data: st.DataObject, precision: float) -> None:
    right = data.draw(st.integers(0, links))
    terms = [
        math.comb(links, n) * precision**n * (1 - precision) ** (links - n) for n in range(right, links + 1)
    ]
    assert tail(links, right, precision) == pytest.approx(math.fsum(terms), rel=1e-9)


def slow(said: list[float], right: list[bool], precision: float) -> float | None:
    """Return the threshold by walking each of the four sequences by hand."""
    pairs, count = sorted(zip(said, right, strict=True), reverse=True), len(said)
    kept: dict[int, float] = {}
    least = next(n for n in range(1, 1000) if precision**n <= 0.05 / 4)
    for start in (40, round(0.1 * count), round(0.25 * count), round(0.5 * count)):
        size = max(start, least)
        while size <= count:
            threshold = pairs[size - 1][0]
            above = [r for s, r in pairs if s >= threshold]
            if tail(len(above), sum(above), precision) > 0.05 / 4:
                break
            kept[len(above)] = threshold
            size += max(1, round(0.02 * count))
    return kept[max(kept)] if kept else None


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=150), st.sampled_from([0.5, 0.8, 0.9]))
def test_the_threshold_is_the_one_found_by_hand(pairs: list[tuple[int, bool]], precision: float) -> None:
    # Right links score higher, so that a threshold is certified often enough.
    said = [(score + 40 * (score % 8 > 0 or right)) / 100 for score, right in pairs]
    right = [bool(score % 8 or r) for score, r in pairs]
    found = promise(np.array(said), np.array(right, dtype=bool), precision)
    assert (found.threshold if found else None) == slow(said, right, precision)
    if found:
        above = np.array(said) >= found.threshold
        assert (found.links, found.right) == (above.sum(), np.array(right)[above].sum())
        assert found.held == len(said) and found.coverage == above.mean()


def test_few_links_promise_nothing_and_equal_probabilities_are_kept_together() -> None:
    said = np.linspace(1, 0.5, FEWEST)
    assert promise(said, np.ones(FEWEST, dtype=bool), 0.9) is None  # .9 ** 40 = .0148 > .05 / 4
    more = np.linspace(1, 0.5, 42)
    assert promise(more, np.ones(42, dtype=bool), 0.9) is not None  # .9 ** 42 = .0120
    assert promise(np.zeros(0), np.zeros(0, dtype=bool), 0.9) is None
    assert promise(said, np.ones(FEWEST, dtype=bool), 1.0) is None, "no sample shows that all are right"
    found = promise(np.repeat([0.9, 0.4], 60), np.arange(120) < 60, 0.9)
    assert found is not None and (found.threshold, found.links, found.right) == (0.9, 60, 60)


def test_the_promise_holds_in_nearly_all_samples() -> None:
    """P(right | score) = score; the precision above a threshold t is then known: (1 + t) / 2."""
    random, broken, drawn = np.random.default_rng(0), 0, 400
    for _ in range(drawn):
        score = random.random(500)
        found = promise(score, random.random(500) < score, 0.9)
        broken += found is not None and (1 + found.threshold) / 2 < 0.9
    assert broken / drawn <= DELTA


def test_a_sequence_ends_at_its_first_failure() -> None:
    """All 200 links would pass, but each sequence has failed before it reaches them."""
    right = np.ones(200, dtype=bool)
    right[10:35:5] = False
    assert tail(200, 195, 0.9) < DELTA / 4 < tail(100, 95, 0.9)
    assert promise(np.linspace(1, 0.5, 200), right, 0.9) is None
    right[10] = right[15] = right[20] = True
    found = promise(np.linspace(1, 0.5, 200), right, 0.9)
    assert found is not None and found.links == 200
