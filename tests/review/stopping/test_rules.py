"""Each stopping rule, judgement by judgement, against the same rule computed from the whole history."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from linker.review.interface import Read, StopState
from linker.review.stopping import LEAST_FOUND, make
from linker.review.stopping.bounds import most_left, short_of, urn_gap, urn_tail
from linker.review.stopping.evidence import Bets
from linker.review.stopping.rule import Rule
from linker.review.stopping.rules import Hypergeometric, Urn, weight

HIT, MISS = Read(True), Read(False)
AUDIT_HIT, AUDIT_MISS = Read(True, "audit"), Read(False, "audit")


def tell(rule: Rule[Any], reads: Sequence[Read]) -> StopState:
    for read in reads:
        rule.update(read)
    return rule.state


def urn_says(population: int, target: float, reads: Sequence[Read]) -> bool:
    """The biased urn from scratch."""
    counted = [r for r in reads if r.relevant or r.phase == "queue"]
    population -= len(reads) - len(counted)
    found = sum(r.relevant for r in counted)
    gap = next((i for i, r in enumerate(reversed(counted)) if r.relevant), len(counted))
    size, short = population - len(counted) + gap, short_of(found, target)
    return population == len(counted) or (
        found >= LEAST_FOUND and gap >= 50 and urn_tail(size, short, gap, weight(target)) < 0.05
    )


def hypergeometric_p(population: int, target: float, reads: Sequence[Read]) -> float:
    """The hypergeometric rule from scratch: every urn, including those that do not begin after a find."""
    counted = [r.relevant for r in reads if r.relevant or r.phase == "queue"]
    population -= len(reads) - len(counted)
    found = sum(counted)
    unread, short = population - len(counted), short_of(found, target)
    if short > unread:
        return 0.0
    x, n = np.cumsum(counted[::-1]), np.arange(1, len(counted) + 1)
    return min(map(float, np.atleast_1d(hypergeom.cdf(x, unread + n, short + x, n))), default=1.0)


reviews = st.tuples(
    st.integers(0, 2**32),
    st.floats(0.02, 0.9),
    st.floats(0.5, 0.99),
    st.sampled_from([0.7, 0.8, 0.9, 0.95, 1.0]),
)


def some_reads(seed: int, first: float, fall: float, count: int) -> list[Read]:
    """A reading order with ever rarer finds, with audits and searches in between."""
    chance = random.Random(seed)
    reads = []
    for i in range(count):
        phase = chance.choices(["queue", "audit", "search"], [30, 1, 1])[0]
        reads.append(Read(chance.random() < first * fall**i, phase))  # type: ignore[arg-type]  # one of the phases
    return reads


@settings(max_examples=60, deadline=None)
@given(reviews)
def test_the_urn_says_at_each_read_what_it_says_from_scratch(review: tuple[int, float, float, float]) -> None:
    seed, first, fall, target = review
    reads = some_reads(seed, first, fall**0.2, 330)
    rule = make("urn", 350, target, {"audit": 0})
    for i, read in enumerate(reads, start=1):
        assert rule.update(read).estimated == urn_says(350, target, reads[:i])


@settings(max_examples=40, deadline=None)
@given(reviews)
def test_the_hypergeometric_rule_says_at_each_read_what_it_says_from_scratch(
    review: tuple[int, float, float, float],
) -> None:
    seed, first, fall, target = review
    reads = some_reads(seed, first, fall, 150)
    rule = Hypergeometric(170, target)
    for i, read in enumerate(reads, start=1):
        rule.update(read)
        assert rule._estimate().reached == (hypergeometric_p(170, target, reads[:i]) < 0.05)


def test_the_hypergeometric_rule_seldom_looks_at_its_urns(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, look = [], Hypergeometric._look

    def counted(rule: Hypergeometric) -> None:
        looks.append(rule)
        look(rule)

    monkeypatch.setattr(Hypergeometric, "_look", counted)
    tell(make("hypergeometric", 10_000, 0.9), [HIT, *[MISS] * 9] * 60)
    assert len(looks) < 60


def test_a_gap_that_suffices_and_is_at_least_fifty_begins_the_audit() -> None:
    rule = make("urn", 11_130, 0.8, {"w": 20})
    before = tell(rule, [MISS] * 30 + [HIT] * 100 + [MISS] * 64)
    assert not before.estimated
    assert "after 1 more irrelevant document" in before.reason
    now = rule.update(MISS)  # the gap of 65 for M = 11,000, as worked in the design
    assert now.estimated
    assert now.certified is None
    assert not now.stop
    assert "300 documents" in now.reason
    rule = make("urn", 11_300, 0.8)
    assert isinstance(rule, Urn)
    assert not tell(rule, [HIT] * 300 + [MISS] * 49).estimated
    assert rule.update(MISS).estimated


def test_an_audit_without_a_find_certifies_and_ends_the_review() -> None:
    rule = make("urn", 11_000, 0.8)
    tell(rule, [HIT] * 100 + [MISS] * 100)
    halfway = tell(rule, [AUDIT_MISS] * 299)
    assert halfway.certified is None
    assert not halfway.stop
    end = rule.update(AUDIT_MISS)
    assert end.left == Bets(0.05, 0.8).most(10_800, 100, 300) - 100 <= 1.1 * most_left(10_800, 300, 0, 0.05)
    assert end.certified == pytest.approx(100 / (100 + end.left))
    assert end.estimated
    assert end.stop
    assert "at least 46%" in end.reason


def test_a_find_in_the_audit_resumes_reading_and_all_audits_count() -> None:
    rule = make("urn", 11_000, 0.8)
    tell(rule, [HIT] * 100 + [MISS] * 100 + [AUDIT_MISS] * 40)
    hit = rule.update(AUDIT_HIT)
    assert not hit.estimated  # the gap restarts
    both = Bets(0.05, 0.8)
    for n in range(41):
        both.take(10_800 - n, 100, relevant=n == 40)
    assert hit.certified == pytest.approx(101 / both.most(10_759, 101))
    resumed = tell(rule, [MISS] * 100)
    assert resumed.estimated
    assert not resumed.stop
    end = tell(rule, [AUDIT_MISS] * 300)
    assert rule.audit.count == 2
    for n in range(300):
        both.take(10_659 - n, 101, relevant=False)
    assert end.left == both.most(10_359, 101) - 101
    assert end.certified == pytest.approx(101 / (101 + end.left))
    assert end.stop
    small = make("urn", 20, 0.8)
    assert tell(small, [HIT] * 15 + [AUDIT_HIT]).left == 4  # all unread documents may still be relevant


def test_neither_a_straggler_nor_an_audit_by_mistake_takes_the_end_back() -> None:
    rule = make("urn", 11_000, 0.8)
    tell(rule, [HIT] * 100 + [MISS] * 100 + [AUDIT_MISS] * 100 + [MISS])
    assert tell(rule, [AUDIT_MISS] * 200).stop
    assert rule.audit.count == 1
    rule = make("urn", 11_000, 0.8)
    tell(rule, [HIT] * 100 + [MISS] * 100 + [AUDIT_HIT, AUDIT_MISS])
    tell(rule, [MISS] * 100)
    assert not rule.state.stop
    assert tell(rule, [AUDIT_MISS] * 300).stop
    assert rule.audit.left == 299


def test_certified_recalls_hold_in_random_audits() -> None:
    """300 audits of populations with mostly hidden relevant documents: at most α of the bounds are wrong."""
    wrong = 0
    for seed in range(300):
        chance = random.Random(seed)
        hidden = chance.randint(30, 150)
        rule = make("urn", 1040, 0.9, {"audit": 80})
        tell(rule, [HIT] * 40)
        unread = [True] * hidden + [False] * (1000 - hidden)
        chance.shuffle(unread)
        found, false = 40, False
        for relevant in unread[:120]:
            found += relevant
            state = rule.update(Read(relevant, "audit"))
            false |= state.certified is not None and state.certified > found / (40 + hidden)
        wrong += false
    assert wrong < 300 * 0.05


def test_below_fifteen_nothing_is_claimed_until_everything_is_read() -> None:
    for name in ("urn", "hypergeometric", "row"):
        rule = make(name, 3000, 0.8)
        state = tell(rule, [HIT] * 14 + [MISS] * 2000)
        assert state == StopState(False, None, state.reason, due=state.due)
        assert "fewer than 15" in state.reason
        assert tell(rule, [Read(True, "search"), *[MISS] * 500]).estimated
    state = tell(make("urn", 60, 0.9), [HIT] * 3 + [MISS] * 57)
    assert state == StopState(True, 1.0, "Every document was read.", stop=True, left=0)
    assert tell(make("urn", 3, 0.9), [MISS] * 3).certified is None


def test_documents_from_beside_the_queue_leave_the_population_with_which_the_gap_shrinks() -> None:
    rule = make("urn", 1000, 0.8)
    tell(rule, [HIT] * 20 + [MISS] * 30 + [Read(False, "search")] * 40)
    assert (rule.counts.population, rule.counts.read, rule.counts.gap) == (960, 50, 30)
    rule.update(Read(True, "search"))
    assert (rule.counts.found, rule.counts.gap, rule.counts.unread) == (21, 0, 909)
    rule = make("urn", 3000, 0.95)
    assert isinstance(rule, Urn)
    tell(rule, [HIT] * 20 + [MISS] * 30)
    before = rule.wanted
    tell(rule, [Read(False, "search")] * 1000)
    assert rule.wanted == urn_gap(1980, short_of(20, 0.95), weight(0.95), 0.05) < before


def test_the_urn_is_the_more_careful_the_higher_the_target() -> None:
    targets = (0.5, 0.8, 0.9, 0.95, 0.99, 1.0)
    assert [weight(target) for target in targets] == [160, 160, 70, 30, 20, 20]
    for target, options, w in ((0.9, {}, 70), (0.9, {"w": 20}, 20), (1.0, {}, 20)):
        rule = make("urn", 3000, target, options)
        assert isinstance(rule, Urn)
        assert rule.w == w
        tell(rule, [HIT] * 30 + [MISS] * 60)
        assert rule.wanted == max(urn_gap(2970, short_of(30, target), w, 0.05), 50)


def test_in_a_row_until_so_many_are_found_and_at_most_so_many_reads() -> None:
    rule = make("row", 5000, 0.8, {"gap": 50})
    assert not tell(rule, [HIT] * 20 + [MISS] * 49).estimated
    assert rule.update(MISS).estimated
    assert not rule.update(HIT).estimated
    until = make("until", 5000, 0.8, {"found": 3, "audit": 0})
    assert not tell(until, [HIT, MISS, HIT]).stop
    state = until.update(HIT)
    assert (state.estimated, state.certified, state.stop) == (False, None, True)
    reads = make("reads", 5000, 0.8, {"reads": 4})
    assert not tell(reads, [MISS] * 3).stop
    assert reads.update(AUDIT_MISS).stop


def test_controls_are_drawn_and_then_reached() -> None:
    rule = make("qbcb", 5000, 0.8)
    control, other = Read(True, "control"), Read(False, "control")
    reached = Read(True, "control", reached=True)
    tell(rule, [other, control] * 13 + [other])
    assert "(13 so far)" in rule.state.reason
    rule.update(control)  # the 14th; for the target of .8, all 14 must be reached
    state = tell(rule, [HIT, MISS, reached] * 13)
    assert not state.estimated
    assert "13 of 14" in state.reason
    assert rule.counts.found == 14 + 13  # a reached control was found before
    state = rule.update(reached)
    assert (state.estimated, state.certified) == (True, 0.8)


@pytest.mark.parametrize("found", [0, 3, 14])
def test_an_audit_ends_a_review_of_a_rare_topic_with_a_bound(found: int) -> None:
    rule = make("urn", 5000, 0.8)
    assert tell(rule, [HIT] * found + [MISS] * 3000).due
    almost = tell(rule, [AUDIT_MISS] * 299)
    assert (almost.stop, almost.left, almost.audit) == (False, None, "")
    state = rule.update(AUDIT_MISS)
    bound = Bets(0.05, 0.8).most(2000 - found, found, 300) - found
    assert (state.estimated, state.certified, state.stop, state.left) == (False, None, True, bound)
    assert "The audit is complete: 0 relevant among 300" in state.reason
    sentence = (
        f"With 95% confidence, at most {bound} relevant ones are left unread, if all verdicts are right."
    )
    assert sentence in state.reason
