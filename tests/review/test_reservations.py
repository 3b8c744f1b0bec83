"""Which document each reviewer has open: by session, until it expires, and the effect on others."""

from typing import Any

import pytest

from linker.base.errors import InputError
from linker.engine.engine import Engine
from linker.review.interface import Candidate, JudgedMeanwhileError, Judgement, Seed
from linker.review.reservations import Reservations
from linker.review.session import Review
from linker.review.session.together import batch_size
from tests.review.memory_ledger import MemoryLedger, engine_of

TOPIC = (Seed("s1", "rain and a river in valencia", document="flood0"), Seed("s2", "mud bridge rescue"))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return engine_of(tmp_path_factory.mktemp("reservations") / "index")


def review_of(engine: Engine, clock: Clock | None = None, **settings: Any) -> Review:
    review = Review(engine, MemoryLedger(TOPIC, **{"order": "z", "mode": "hybrid", **settings}))
    if clock:
        review._open = Reservations(review._key, clock=clock)
    return review


def asked(review: Review, reviewer: str = "", holder: str = "") -> Candidate:
    candidate = review.next(reviewer, holder)
    assert candidate is not None
    return candidate


def test_a_reservation_belongs_to_a_session_whatever_its_name(engine: Engine) -> None:
    review = review_of(engine)
    first = asked(review, "", "session-1")
    assert asked(review, "ana", "session-1") == first  # a name was entered in between
    assert asked(review, "ana", "session-2") != first  # a second browser of the same person
    assert asked(review, "", "session-3") not in (first, review.next("ana", "session-2"))


def test_a_reservation_that_lies_for_ten_minutes_goes_to_who_asks_next(engine: Engine) -> None:
    clock = Clock()
    review = review_of(engine, clock)
    gone, later = asked(review, "", "gone"), asked(review, "later", "later")
    clock.now = 599
    assert asked(review, "ana", "ana") not in (gone, later)
    assert asked(review, "later", "later") == later  # viewing renews it
    clock.now = 601
    assert asked(review, "bo", "bo") == gone
    assert asked(review, "", "gone") not in (gone, later)
    clock.now = 1300
    assert asked(review, "bo", "bo") == gone  # nobody else has asked: it is still there


def test_the_only_relevant_document_is_not_lost_to_a_visitor_without_a_name(engine: Engine) -> None:
    clock = Clock()
    review = review_of(engine, clock)
    best = asked(review, "", "visitor")
    read = set()
    while candidate := review.next("ana", "ana"):
        read.add(candidate.id)
        review.judge(candidate, "not", "ana", holder="ana")
    assert best.id not in read
    assert review.elsewhere("ana") == 1  # so the review must not report that nothing is left
    clock.now = 600
    assert asked(review, "ana", "ana") == best
    review.judge(best, "relevant", "ana", holder="ana")
    assert review.next("ana", "ana") is None
    assert (review.elsewhere("ana"), review.progress().found) == (0, 1)


def test_what_is_before_a_reader_stays_there_until_another_judges_it(engine: Engine) -> None:
    review = review_of(engine)
    held = asked(review, "ana", "a")
    review.refresh()
    assert asked(review, "bo", "b") != held
    assert asked(review, "ana", "a") == held
    review.ledger.add_all([Judgement(held.seed, held.id, "not", "cem")])  # by another process
    review.refresh()
    assert asked(review, "ana", "a").id != held.id
    review = review_of(engine)
    held = asked(review, "ana", "a")
    review.judge(review.beside(held.id), "not", "bo", holder="b")  # bo has found it by a search
    assert asked(review, "ana", "a").id != held.id


def test_a_verdict_on_what_was_judged_meanwhile_is_not_stored(engine: Engine) -> None:
    review = review_of(engine)
    candidate = asked(review, "ana", "a")
    review.judge(candidate, "not", "bo", holder="b", seen="")
    for reviewer, holder in (("ana", "a"), ("bo", "old tab")):
        with pytest.raises(JudgedMeanwhileError, match="bo has judged it not meanwhile") as caught:
            review.judge(candidate, "relevant", reviewer, holder=holder, seen="")
        assert caught.value.judgement is not None
    assert [j.verdict for j in review.ledger.judgements()] == ["not"]
    review.judge(candidate, "relevant", "ana", holder="a", seen="not")  # having seen it
    assert (review.progress().read, review.progress().found) == (1, 1)
    with pytest.raises(JudgedMeanwhileError, match="undone"):
        review.undo("ana")
        review.undo("bo")
        review.judge(candidate, "relevant", "cem", seen="not")


def test_a_form_that_is_sent_twice_is_stored_once(engine: Engine) -> None:
    review = review_of(engine)
    candidate = asked(review, "ana", "a")
    for _ in range(2):
        review.judge(candidate, "relevant", "ana", "a note", ("tag",), holder="a", seen="")
    assert len(review.ledger.judgements()) == 1
    skipped = asked(review, "ana", "a")
    for _ in range(2):
        review.judge(skipped, "skip", "ana", holder="a", seen="")
    assert len(review.ledger.judgements()) == 2
    review.judge(candidate, "relevant", "ana", "another note", holder="a", seen="relevant")
    assert review.ledger.judgements()[0].note == "another note"


def test_blind_judging_takes_a_second_verdict_without_showing_the_first(engine: Engine) -> None:
    review = review_of(engine, double=True)
    first = asked(review, "ana", "a")
    review.judge(first, "relevant", "ana", holder="a", seen="")
    second = asked(review, "bo", "b")
    assert second.id == first.id
    assert review.standing(second, "bo") is None
    review.judge(second, "not", "bo", holder="b", seen="")
    assert [j.verdict for j in review.ledger.judgements()] == ["relevant", "not"]


def test_copies_are_stored_and_undone_in_one_go_and_by_their_tags_alone(engine: Engine) -> None:
    review = review_of(engine)
    review.judge(review.beside("flood7"), "not", "bo")
    candidate = asked(review, "ana")
    copies = ["flood5", "flood6", "flood7", "flood0", "none"]
    review.judge(candidate, "relevant", "ana", "a note", ("wet",), copies=copies)
    made = review.ledger.judgements("ana")
    # bo's document, a seed and an unknown one are left out
    assert [j.id for j in made] == [
        candidate.id,
        "flood5",
        "flood6",
    ]
    assert {(j.note, j.tags, j.phase) for j in made[1:]} == {
        ("", ("wet", f"copy of {candidate.id}"), "search")
    }
    undone = review.undo("ana")
    assert undone is not None
    assert undone.id == candidate.id
    assert review.ledger.judgements("ana") == ()
    assert asked(review, "ana").id == candidate.id
    assert review.progress().read == 1
    review = review_of(engine)
    first = asked(review)
    review.judge(first, "not")
    review.judge(asked(review), "not", tags=("copy of an older post",))
    review.undo()
    assert [j.id for j in review.ledger.judgements()] == [first.id]
    assert batch_size([]) == 0
    review.judge(review.beside("flood5"), "not", tags=("copy of nothing",))
    assert batch_size(review.ledger.judgements()[1:]) == 1


def test_what_review_did_not_hand_out_was_found_by_search_and_leaves_audit_as_it_was(engine: Engine) -> None:
    review = review_of(engine)
    for phase in ("queue", "audit", "control"):
        review.judge(Candidate("s1", f"flood{len(phase)}", 1.0, 10**30, phase=phase), "not")
    assert {j.phase for j in review.ledger.judgements()} == {"search"}
    candidate = asked(review)
    review.judge(Candidate(candidate.seed, candidate.id, 99.0, phase="control"), "not")
    last = review.ledger.judgements()[-1]
    assert (last.phase, last.score) == ("queue", candidate.score)
    review = review_of(engine, audit=5)
    review.begin_audit()
    drawn = asked(review, "ana")
    review.judge(drawn, "not", "ana")
    review.judge(Candidate(drawn.seed, drawn.id, 0.0), "maybe", "bo")
    assert {j.phase for j in review.ledger.judgements()} == {"audit"}


@pytest.mark.parametrize("unit", ["topic", "pairs"])
def test_what_is_no_judgement_of_this_review_is_refused(engine: Engine, unit: str) -> None:
    review = review_of(engine, unit=unit, where=["story=flood"])
    for seed, id_, reviewer, message in (
        ("other", "flood1", "", "no seed 'other'"),
        ("s1", "none", "", "'none' is not in the index"),
        ("s1", "flood0", "", "'flood0' is a seed itself"),
        ("s1", "vote1", "", "or the review's filter leaves it out"),
        ("s1", "flood1", "consensus", "judge under another"),
    ):
        with pytest.raises(InputError, match=message):
            review.judge(Candidate(seed, id_, 0.0), "relevant", reviewer)
    assert not review.ledger.judgements()


def test_without_a_seed_a_topic_takes_the_likeliest_and_pairs_ask_for_one(engine: Engine) -> None:
    review = review_of(engine)
    review.judge(Candidate("", "flood2", 0.0), "relevant")
    assert review.ledger.judgements()[0].seed in ("s1", "s2")
    with pytest.raises(InputError, match="name the one to which"):
        review_of(engine, unit="pairs").judge(Candidate("", "flood2", 0.0), "relevant")
    with pytest.raises(InputError, match="no seed to which"):
        Review(engine, MemoryLedger((), unit="pairs")).judge(Candidate("", "flood2", 0.0), "relevant")


def test_what_has_left_the_review_is_not_counted(engine: Engine) -> None:
    kept = MemoryLedger(TOPIC, order="z")
    review = Review(engine, kept)
    review.judge(review.beside("flood1"), "relevant")
    kept.seeds = (*TOPIC, Seed("s3", "water", document="flood1"))  # it became a seed
    review.refresh()
    assert (review.progress().read, review.progress().found, review.progress().population) == (0, 0, 58)
