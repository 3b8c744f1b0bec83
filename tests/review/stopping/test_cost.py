"""The cost of certainty, and the statements allowed after a review."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linker.review.interface import Progress, Read, StopState
from linker.review.stopping import make, method_note, offer_of, outlook, price, price_of
from linker.review.stopping.bounds import most_left


def test_the_worked_price() -> None:
    assert price(11_000, 100, 0.8) == 1196
    assert price(350, 15, 0.9) == 272  # as docs/stopping.md says of a small review


@given(st.integers(1, 400), st.integers(1, 60), st.sampled_from([0.5, 0.8, 0.9, 0.95, 1.0]))
def test_the_price_is_the_first_number_that_certifies(unread: int, found: int, target: float) -> None:
    certifying = [
        n for n in range(unread + 1) if found / (found + most_left(unread, n, 0, 0.05)) >= target - 1e-12
    ]
    assert price(unread, found, target) == certifying[0]


def test_the_price_is_told_before_the_reading_begins() -> None:
    told = outlook(11_100, 0.8, what="posts")
    assert "1,292 (12% of all) if 100 are found" in told
    assert outlook(10, 0.8) == "With so few documents, read them all."
    rule = make("urn", 11_100, 0.8)
    assert price_of(rule, "posts").startswith(f"{told} To certify it by the order, which assumes")
    assert "236 (2% of all) if 100 are found" in price_of(rule, "posts")
    for _ in range(100):
        rule.update(Read(True))
    assert price_of(rule, "posts").startswith("Certainty would cost 1,292 more posts for a recall ≥ 80% and ")
    assert price_of(make("urn", 0, 0.8)) == "All documents were read."
    assert price_of(make("urn", 10, 0.8)) == "With so few documents, read them all."


def test_what_is_certified_has_no_price() -> None:
    rule = make("urn", 11_100, 0.8, {"certificate": "exact"})
    for read in [*[Read(True)] * 100, *[Read(False, "audit")] * 1300]:
        rule.update(read)
    assert price_of(rule).startswith("Certainty would cost ")
    assert "80%" not in price_of(rule)
    for read in [Read(False, "audit")] * 9600:
        rule.update(read)
    assert rule.counts.unread
    assert price_of(rule) == ""


@pytest.mark.parametrize(("target", "said"), [(0.9, "90%"), (0.57, "57%"), (0.975, "0.975"), (1.0, "100%")])
def test_a_target_is_said_in_whole_per_cent_or_as_it_is(target: float, said: str) -> None:
    assert f"a recall below {said} is not" in make("hypergeometric", 1000, target)._estimate().reason


@pytest.mark.parametrize("before", [0, 200])
def test_an_audit_of_the_price_certifies_the_target(before: int) -> None:
    """Random reads before the audit count, which lowers its price."""
    begun = [*[Read(False, "control")] * before, *[Read(True)] * 100]
    rule = make("urn", 11_100, 0.8, {"certificate": "exact"})
    for read in begun:
        rule.update(read)
    count = offer_of(rule).price
    assert before == 0 or count < 1292 - before // 2
    for size, certifies in ((count, True), (count - 1, False)):
        audited = make("urn", 11_100, 0.8, {"audit": size, "certificate": "exact"})
        for read in begun:
            audited.update(read)
        offered = offer_of(audited)
        for read in [Read(False, "audit")] * size:
            audited.update(read)
        assert audited.state.left == offered.left
        assert audited.state.certified == offered.recall
        assert audited.state.certified is not None
        assert (audited.state.certified >= 0.8) == certifies
        assert offer_of(audited).price == (0 if certifies else 1)


def test_an_audit_of_the_price_by_the_order_certifies_the_target_by_the_order() -> None:
    """Half of the audit is drawn from the front; the price is less than a fifth of that of the other certificate."""
    begun = [Read(True)] * 100
    rule = make("urn", 11_100, 0.8)
    for read in begun:
        rule.update(read)
    offer = offer_of(rule)
    assert offer.order_price == 236 <= offer.price / 5
    for size, certifies in ((236, True), (200, False)):
        audited = make("urn", 11_100, 0.8, {"audit": size})
        for read in begun:
            audited.update(read)
        offered = offer_of(audited)
        for _ in range(size):
            audited.update(Read(False, "front" if audited.audit.from_front else "audit"))
        assert audited.audit.front == [size - 125 if size == 236 else 100, 0]
        assert audited.state.left is not None
        assert offered.left - 3 <= audited.state.left <= offered.left
        by_order = audited.state.by_order
        assert by_order is not None
        assert by_order.recall is not None
        assert offered.by_order is not None
        assert by_order.recall >= offered.by_order
        assert (by_order.recall >= 0.8) == certifies
        assert by_order.claim in audited.state.audit
        assert "if the first twentieth of the unread holds at least half" in audited.state.audit
        front = audited.audit.front[0]
        whole = Progress(
            100 + size, 100, 0, 0, 11_100, [], audited.state, "queue", "", audited=size, front=front
        )
        note = method_note(whole, 0.8, whole.audited)
        assert f"{front} of those drawn at random came from the first twentieth" in note.text
        assert "By the order of reading, the share missed is at most 2" in note.text
        assert any("without its “if”" in caution for caution in note.cautions)


def test_finds_outside_the_front_contradict_the_order() -> None:
    """Of as many reads from either, one from the front should find ten times as often: 1/11 < .1 for one find."""
    rule = make("urn", 11_100, 0.8, {"audit": 100})
    for read in [*[Read(True)] * 100, *[Read(False, "audit")] * 50, *[Read(False, "front")] * 50]:
        rule.update(read)
    assert not rule.audit.is_contradicted
    known = rule.state.by_order
    assert known is not None
    assert not known.contradicted
    state = rule.update(Read(True, "audit"))
    assert state.by_order is not None
    assert state.by_order.contradicted
    assert state.by_order.recall is None
    assert state.by_order.assumption == known.assumption
    assert (
        "contradict the assumption of the certificate by the order: of 51 drawn from everything unread, 1 are relevant"
        in state.audit
    )
    assert "by the order" not in price_of(rule)
    state = rule.update(Read(True, "front"))  # 1 − (10 / 11)² > .1
    assert state.by_order is None or not state.by_order.contradicted
    assert offer_of(rule).order_price is not None


def progress(read: int, found: int, state: StopState, population: int = 11_665) -> Progress:
    return Progress(read, found, 0, 0, population, [], state, "queue", "")


def test_what_may_be_written_after_a_review_and_nothing_else() -> None:
    note = method_note(
        progress(912, 55, StopState(True, 0.2925, "")), 0.9, 300, what="posts", source="the demo"
    )
    assert note.text == (
        "In 11,665 posts from the demo, we read 912, 300 of them drawn at random from what was still unread, and found "
        "55 relevant. By an estimate from the order of reading, these are at least 90% of all relevant ones. "
        "With 95% confidence, the share missed is at most 71 %, if all verdicts are right."
    )
    assert "all relevant posts" in note.cautions[0]
    assert "10,753 are unread" in note.cautions[0]
    early = method_note(progress(40, 20, StopState(False, None, "")), 0.8)
    assert "estimate" not in early.text
    assert "missed" not in early.text
    assert any("asks for more reading" in caution for caution in early.cautions)
    few = method_note(progress(500, 14, StopState(False, None, "")), 0.8)
    assert not re.search("%|estimate|confidence", few.text)
    assert any("no share at all" in caution for caution in few.cautions)
    whole = method_note(progress(60, 3, StopState(True, 1.0, ""), population=60), 0.8)
    assert whole.text == "We read all 60 documents and found 3 relevant."


@given(st.floats(0, 1))
def test_the_share_missed_is_never_understated(certified: float) -> None:
    text = method_note(progress(500, 50, StopState(True, certified, "")), 0.8).text
    (share,) = re.findall(r"at most (\d+) %", text)
    assert int(share) >= 100 * (1 - certified) - 1e-6
