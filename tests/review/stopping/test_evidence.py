"""The certificate of all random reads: against a plain oracle, and how often it errs where reads are mixed."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from linker.review.interface import Phase, Read
from linker.review.stopping import make, price
from linker.review.stopping.bounds import short_of
from linker.review.stopping.evidence import AGAIN, FIRST, HEDGE, SHARES, Evidence

History = list[
    tuple[int, int, bool]
]  # of random reads: unread and found before each, and whether it was relevant


def slow(history: History, total: int) -> float:
    """Return the stake by one bet after another: e ← e (1 + λ (q − x)), λ = share / (1 − q)."""

    def bet(share: float, reads: History) -> float:
        stake = 1.0
        for unread, found, relevant in reads:
            q = max(total - found, 0) / unread
            if q >= 1 and not relevant:
                return math.inf
            stake *= 1 - share if relevant else 1 + share / (1 - q) * q
        return stake

    stakes = sum(HEDGE * bet(share, history) for share in SHARES)
    finds = [0, *(place for place, read in enumerate(history, start=1) if read[2])]
    for number in range(60):  # the bet on no find behind so many finds waits until there were so many
        begun = history[finds[number] :] if number < len(finds) else []
        stakes += FIRST * AGAIN**number * bet(1.0, begun)
    return stakes


@st.composite
def histories(draw: st.DrawFn) -> History:
    unread, found, history = draw(st.integers(30, 120)), draw(st.integers(0, 20)), History()
    for kind in draw(
        st.lists(st.sampled_from("mmmmhrf"), max_size=25)
    ):  # random: miss, hit; queue: other, find
        if kind in "mh":
            history.append((unread, found, kind == "h"))
        unread, found = unread - 1, found + (kind in "hf")
    return history


def told(history: History) -> Evidence:
    evidence = Evidence(0.05)
    for unread, found, relevant in history:
        evidence.take(unread, found, relevant=relevant)
    return evidence


@given(histories(), st.integers(0, 150))
def test_runs_of_reads_are_the_single_bets(history: History, total: int) -> None:
    found = history[-1][1] + history[-1][2] if history else 0
    total = max(total, found)  # fewer than were found are out of the question
    oracle, log = slow(history, total), told(history).log(total)
    assert log == (math.inf if math.isinf(oracle) else pytest.approx(math.log(oracle), abs=1e-7))


@given(histories())
def test_the_bound_is_the_last_number_that_is_not_refuted(history: History) -> None:
    evidence = told(history)
    unread, found = (history[-1][0] - 1, history[-1][1] + history[-1][2]) if history else (50, 3)
    refuted = [evidence.log(total) >= math.log(20) - 1e-9 for total in range(found, found + unread + 1)]
    assert refuted == sorted(refuted)
    assert evidence.most(unread, found) == found + max(
        refuted.index(True) - 1 if True in refuted else unread, 0
    )


def test_a_sample_without_a_find_is_its_exact_tail() -> None:
    evidence = told([(1000 - n, 20, False) for n in range(200)])
    tail = float(hypergeom.pmf(0, 1000, 15, 200))
    assert FIRST / tail < math.exp(evidence.log(35)) < 1 / tail


@given(st.integers(60, 20_000), st.integers(15, 400), st.sampled_from([0.8, 0.9, 0.95]))
def test_looking_at_any_time_costs_at_most_a_tenth_more_without_a_find(
    unread: int, found: int, target: float
) -> None:
    exact = price(unread, found, target)
    assert exact <= Evidence(0.05).price(unread, found, short_of(found, target)) <= 1.1 * exact + 1


@pytest.mark.parametrize(("every", "audits"), [(0, True), (3, False), (4, True)])
def test_the_bound_seldom_errs_whatever_is_read_in_between(every: int, audits: bool) -> None:
    """800 reviews whose queue finds what it can and never what is hidden: in at most .05 is a bound ever wrong."""
    wrong, reviews = 0, 800
    for seed in range(reviews):
        chance = random.Random(seed)
        hidden, seen = chance.randint(5, 40), chance.randint(5, 40)
        unread = [*["hidden"] * hidden, *["seen"] * seen, *["other"] * (300 - hidden - seen)]
        rule, found, false = make("urn", 300, 0.9, {"audit": 60}), 0, False
        for number in range(150):
            phase = (
                "audit" if audits and number > 80 else "control" if every and not number % every else "queue"
            )
            best = next((d for d in ("seen", "other") if d in unread), "hidden")
            document = best if phase == "queue" else chance.choice(unread)
            unread.remove(document)
            found += document != "other"
            left = rule.update(Read(document != "other", phase)).left
            false |= left is not None and left < hidden + seen - found
        wrong += false
    assert 0 < wrong <= reviews * 0.05 + 3 * math.sqrt(reviews * 0.05 * 0.95)


def test_random_reads_strewn_into_a_review_lower_the_price_of_its_end() -> None:
    """Of 11,000 documents 100 are relevant; 150 random reads were made while 1,500 of the queue found 90 of them."""
    evidence = told([(11_000 - 11 * n, min(90, n), False) for n in range(150)])
    alone = Evidence(0.05).price(9_350, 90, short_of(90, 0.8))
    assert evidence.price(9_350, 90, short_of(90, 0.8)) < alone - 120
