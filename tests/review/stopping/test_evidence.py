"""The certificate from all random reads: against a plain oracle, and how often it errs with mixed reads."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from linker.review.interface import Phase, Read
from linker.review.stopping import make, price
from linker.review.stopping.bounds import short_of
from linker.review.stopping.evidence import AGAIN, FIRST, HEDGE, KEPT, SHARE, Bets

TARGET = 0.8
History = list[tuple[int, int, bool, bool]]  # per random read: unread, found before, relevant, from an audit
Fronts = list[int]  # per random read: the size of the front if it is from the front, else 0


def slow(history: History, total: int, fronts: Fronts | None = None) -> float:
    """Return the stake after successive bets: e ← e (1 + λ (q − x)), λ = (1 − kept) / (1 − q)."""

    def bet(keep: float | None, begin: int = 0) -> float:
        """Bet a constant (`kept`) on each read; or, in an audit, everything from `begin`, otherwise by the target."""
        stake = 1.0
        for number, (unread, found, relevant, audit) in enumerate(history):
            remaining, fewer = max(total - found, 0), TARGET * total - found
            q, share = remaining / unread, keep
            if fronts and fronts[number]:
                q = math.ceil(remaining / 2) / fronts[number]
            if share is None and audit:
                share = 0.0 if number >= begin else 1.0
            elif share is None:
                share = max(fewer / remaining, KEPT) if remaining else KEPT
            if share == 1:
                continue
            if q >= 1 and not relevant:
                return math.inf
            stake *= share if relevant else 1 + (1 - share) / (1 - q) * q
        return stake

    stakes = sum(SHARE * bet(keep) for keep in HEDGE)
    finds = [0, *(position for position, read in enumerate(history, start=1) if read[2] and read[3])]
    for number in range(60):  # a bet after this many finds is only placed once they are there
        alive = number == len(finds) - 1
        waits = number >= len(finds)
        if alive or waits:
            stakes += FIRST * AGAIN**number * bet(None, finds[number] if alive else len(history))
    return stakes


@st.composite
def histories(draw: st.DrawFn) -> History:
    unread, found, history = draw(st.integers(30, 120)), draw(st.integers(0, 20)), History()
    # The audit: m, h; controls: M, H; the queue: r, f.
    for kind in draw(st.lists(st.sampled_from("mmmmhMMHrf"), max_size=25)):
        if kind in "mhMH":
            history.append((unread, found, kind in "hH", kind in "mh"))
        unread, found = unread - 1, found + (kind in "hHf")
    return history


def told(history: History) -> Bets:
    evidence = Bets(0.05, TARGET)
    for unread, found, relevant, audit in history:
        evidence.take(unread, found, relevant=relevant, audit=audit)
    return evidence


@given(histories(), st.integers(0, 150))
def test_runs_of_reads_are_the_single_bets(history: History, total: int) -> None:
    found = history[-1][1] + history[-1][2] if history else 0
    total = max(total, found)  # fewer than were found are impossible
    oracle, log = slow(history, total), told(history).log(total)
    assert log == (math.inf if math.isinf(oracle) else pytest.approx(math.log(oracle), abs=1e-7))


@given(histories(), st.data())
def test_reads_from_the_front_are_the_single_bets(history: History, data: st.DataObject) -> None:
    """The front is a twentieth of the unread, less what the audit read from it since the last find."""
    evidence, fronts, read = Bets(0.05, TARGET, by_order=True), Fronts(), 0
    for unread, found, relevant, audit in history:
        front = audit and math.ceil(unread / 20) > read and data.draw(st.booleans())
        fronts.append(math.ceil(unread / 20) - read if front else 0)
        evidence.take(unread, found, relevant=relevant, audit=audit, front=front)
        read = 0 if relevant and audit else read + front
    total = data.draw(st.integers(history[-1][1] + history[-1][2] if history else 0, 150))
    oracle, log = slow(history, total, fronts), evidence.log(total)
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
    evidence = told([(1000 - n, 20, False, True) for n in range(200)])
    tail = float(hypergeom.pmf(0, 1000, 15, 200))
    assert FIRST / tail < math.exp(evidence.log(35)) < 1 / tail


@given(st.integers(60, 20_000), st.integers(15, 400), st.sampled_from([0.8, 0.9, 0.95]))
def test_looking_at_any_time_costs_at_most_a_tenth_more_without_a_find(
    unread: int, found: int, target: float
) -> None:
    exact = price(unread, found, target)
    assert exact <= Bets(0.05, target).price(unread, found, short_of(found, target)) <= 1.1 * exact + 1


@pytest.mark.parametrize(("every", "audits"), [(0, True), (3, False), (4, True)])
def test_the_bound_seldom_errs_whatever_is_read_in_between(every: int, audits: bool) -> None:
    """100 reviews whose queue never finds hidden documents: a bound is ever wrong in at most .05 of them."""
    wrong, reviews = 0, 100
    for seed in range(reviews):
        chance = random.Random(seed)
        hidden, visible = chance.randint(5, 40), chance.randint(5, 40)
        unread = [*["hidden"] * hidden, *["seen"] * visible, *["other"] * (300 - hidden - visible)]
        rule, found, false = make("urn", 300, 0.9, {"audit": 60}), 0, False
        for number in range(150):
            phase: Phase = (
                "audit" if audits and number > 80 else "control" if every and not number % every else "queue"
            )
            best = next((d for d in ("seen", "other") if d in unread), "hidden")
            document = best if phase == "queue" else chance.choice(unread)
            unread.remove(document)
            found += document != "other"
            bound = rule.update(Read(document != "other", phase)).left
            false |= bound is not None and bound < hidden + visible - found
        wrong += false
    assert audits <= wrong <= reviews * 0.05 + 3 * math.sqrt(reviews * 0.05 * 0.95)


def test_random_reads_from_before_lower_the_price_of_the_end() -> None:
    """100 of 11,000 documents are relevant; 300 were screened at random, or 150 were interspersed in 1,650 reads."""
    short, price_of = short_of(100, TARGET), Bets(0.05, TARGET).price
    none = told([(11_000 - n, 0, False, False) for n in range(300)])
    assert none.price(9_800, 100, short) < price_of(9_800, 100, short) - 250
    finds = [30, 120, 210]  # the expected number: they cost nothing
    some = told([(11_000 - n, sum(n > f for f in finds), n in finds, False) for n in range(300)])
    assert some.price(9_800, 100, short) < price_of(9_800, 100, short) + 20
    strewn = told([(11_000 - 11 * n, min(90, n), False, False) for n in range(150)])
    assert strewn.price(9_350, 95, short_of(95, TARGET)) < price_of(9_350, 95, short_of(95, TARGET)) - 100


@pytest.mark.parametrize("hold", [True, False])
def test_the_certificate_by_the_order_seldom_errs_while_the_front_holds_half(hold: bool) -> None:
    """300 reviews of frozen orders: wrong in at most .05 if the front holds half of those left."""
    wrong, reviews = 0, 300
    for seed in range(reviews):
        chance = random.Random(seed)
        hidden = chance.randint(8, 40)
        front = math.ceil(hidden * 0.6) if hold else 0
        unread = [
            *["r"] * front, *["o"] * (100 - front), *["r"] * (hidden - front),
            *["o"] * (1900 - hidden + front),
        ]  # fmt: skip
        first, last = unread[:100], unread[100:]
        chance.shuffle(first)
        chance.shuffle(last)
        unread, rule = first + last, make("urn", 2040, 0.9, {"audit": 140})
        for _ in range(40):
            rule.update(Read(True))
        for _ in range(140):
            size = rule.audit.order_evidence.front(len(unread)) if rule.audit.from_front else len(unread)
            relevant = unread.pop(chance.randrange(size)) == "r"
            state = rule.update(Read(relevant, "front" if size < len(unread) + 1 else "audit"))
            if relevant:
                break
        left = unread.count("r")
        recall = state.by_order.recall if state.by_order else None
        wrong += recall is not None and recall > (40 + hidden - left) / (40 + hidden) + 1e-12
    assert (wrong <= reviews * 0.05 + 3 * math.sqrt(reviews * 0.05 * 0.95)) == hold
