"""A review hands out, counts, undoes and resumes; everything that lasts is in its ledger."""

from typing import Any

import pytest

from linker.base.errors import InputError
from linker.engine.engine import Engine
from linker.review.interface import Candidate, Seed, Verdict
from linker.review.session import Review
from tests.review.memory_ledger import MemoryLedger, engine_of

TOPIC = (
    Seed("s1", "rain and a river in valencia", document="flood0"),
    Seed("s2", "mud bridge rescue", "Water"),
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return engine_of(tmp_path_factory.mktemp("session") / "index")


def ledger(**settings: Any) -> MemoryLedger:
    return MemoryLedger(TOPIC, **{"order": "z", **settings})


def truth(candidate: Candidate) -> Verdict:
    return "relevant" if candidate.id.startswith("flood") else "not"


def read(review: Review, count: int, reviewer: str = "") -> list[str]:
    """Judge the next documents correctly, and return them."""
    shown = []
    for _ in range(count):
        candidate = review.next(reviewer)
        if candidate is None:
            break
        shown.append(candidate.id)
        review.judge(candidate, truth(candidate), reviewer)
    return shown


def test_a_topic_reads_every_document_once_and_no_seed(engine: Engine) -> None:
    review = Review(engine, ledger(mode="hybrid"))
    shown = read(review, 100)
    assert len(shown) == len(set(shown)) == review.population.size == 59
    assert "flood0" not in shown
    progress = review.progress()
    assert (progress.read, progress.found, progress.population) == (59, 19, 59)
    assert progress.curve[-1] == 19
    assert list(progress.curve) == sorted(progress.curve)


def test_pairs_read_a_document_for_each_seed_but_not_beside_itself(engine: Engine) -> None:
    review = Review(engine, ledger(unit="pairs", mode="hybrid"))
    pairs = []
    while candidate := review.next():
        pairs.append((candidate.seed, candidate.id))
        review.judge(candidate, "not")
    assert len(pairs) == len(set(pairs)) == review.population.size == 119
    assert ("s1", "flood0") not in pairs
    assert ("s2", "flood0") in pairs


def test_next_is_same_until_it_is_judged_and_is_given_to_two_only_for_double_judging(engine: Engine) -> None:
    review = Review(engine, ledger())
    ana, bo = review.next("ana"), review.next("bo")
    assert ana == review.next("ana") != bo
    assert ana is not None
    review.judge(ana, "not", "ana")
    assert review.next("ana") not in (ana, bo)
    review = Review(engine, ledger(double=True))
    shown = read(review, 5, "ana")
    assert read(review, 5, "bo") == shown
    assert review.progress().read == 5
    assert read(review, 1, "bo")[0] not in shown


def test_skipped_documents_come_last_and_once_more(engine: Engine) -> None:
    entries = ledger(mode="bm25")
    review = Review(engine, entries)
    first = review.next()
    assert first is not None
    assert review.judge(first, "skip").skipped == 1
    assert review.progress().read == 0
    shown = read(review, 1000)
    assert shown[-1] == first.id
    assert review.progress().skipped == 0
    static = Review(engine, MemoryLedger(TOPIC, order="z", mode="bm25"))
    for _ in range(2 * len(shown)):
        if candidate := static.next():
            static.judge(candidate, "skip")
    assert static.next() is None
    assert static.progress().skipped == len(shown)


def test_maybe_is_read_and_not_found_and_a_search_beside_the_queue_counts(engine: Engine) -> None:
    review = Review(engine, ledger())
    candidate = review.next()
    assert candidate is not None
    progress = review.judge(candidate, "maybe")
    assert (progress.read, progress.found, progress.maybe) == (1, 0, 1)
    review = Review(engine, ledger(mode="hybrid"))
    progress = review.judge(Candidate("s1", "vote3", 1.0, phase="search"), "relevant")
    assert (progress.read, progress.found) == (1, 1)
    assert "vote3" not in read(review, 100)


def test_undo_asks_the_same_again_and_leaves_the_earlier_verdict(engine: Engine) -> None:
    review = Review(engine, ledger())
    shown = read(review, 3)
    waiting = review.next()
    undone = [review.undo(), review.undo()]
    assert [j.id for j in undone if j] == shown[:0:-1]
    assert review.progress().read == 1
    assert waiting is not None
    assert read(review, 3) == [*shown[1:], waiting.id]
    assert Review(engine, ledger()).undo() is None
    review = Review(engine, ledger())
    candidate = review.next("ana")
    assert candidate is not None
    review.judge(candidate, "not", "ana")
    assert review.judge(candidate, "relevant", "bo").found == 1
    assert review.progress().read == 1
    review.undo("bo")
    assert (review.progress().read, review.progress().found) == (1, 0)


def test_a_review_resumes_from_its_ledger(engine: Engine) -> None:
    whole, halves = ledger(mode="hybrid"), ledger(mode="hybrid")
    shown = read(Review(engine, whole), 30)
    first = read(Review(engine, halves), 13)
    resumed = Review(engine, halves)
    assert resumed.progress().read == 13
    assert first + read(resumed, 17) == shown
    assert list(resumed.progress().curve) == list(Review(engine, whole).progress().curve)


def test_an_audit_draws_from_the_unread_and_ends_with_a_hit(engine: Engine) -> None:
    entries = ledger(audit=25)
    review = Review(engine, entries)
    queue = set(read(review, 10))
    waiting = review.next()
    review.begin_audit()
    assert review.progress().phase == "audit"
    drawn = review.next()
    assert Review(engine, entries).next() == drawn
    while review.progress().phase == "audit" and (candidate := review.next()):
        assert candidate.phase == "audit"
        assert candidate.id not in queue
        queue.add(candidate.id)
        review.judge(candidate, truth(candidate))
    assert candidate is not None
    assert truth(candidate) == "relevant"
    if waiting is not None and waiting.id not in queue:
        assert review.next() == waiting
    review.undo()
    assert review.progress().phase == "audit"


def test_an_audit_without_a_hit_ends_after_its_size(engine: Engine) -> None:
    review = Review(engine, ledger(audit=7))
    review.begin_audit()
    drawn = []
    while review.phase == "audit" and (candidate := review.next()):
        drawn.append(candidate.id)
        review.judge(candidate, "not")
    assert len(drawn) == 7
    assert Review(engine, review.ledger).phase == "queue"
    review.undo()
    assert review.phase == "audit"
    assert read(review, 1) == drawn[-1:]
    review.begin_audit()
    assert review.next() is not None
    review.resume()
    following = review.next()
    assert following is not None
    assert following.phase == "queue"


def test_per_seed_a_seed_is_done_after_enough(engine: Engine) -> None:
    review = Review(engine, ledger(unit="pairs", per_seed=True, until=2, mode="hybrid"))
    while candidate := review.next():
        review.judge(candidate, "relevant" if candidate.seed == "s1" else "not")
    by_seed = [j.seed for j in review.ledger.judgements()]
    assert (by_seed.count("s1"), by_seed.count("s2")) == (2, 60)


def test_random_controls_come_first_and_the_order_learns_them_only_where_it_comes_upon_them(
    engine: Engine,
) -> None:
    entries = ledger(rule="qbcb", target=0.5, rule_options={"controls": 5}, audit=1, mode="hybrid")
    review, drawn = Review(engine, entries), []
    while (candidate := review.next()) and candidate.phase == "control":
        drawn.append(candidate.id)
        review.judge(candidate, truth(candidate))
    assert sum(id_.startswith("flood") for id_ in drawn) == 5
    review = Review(engine, entries)
    assert review.progress().phase == "queue"
    reasons = []
    while rest := read(review, 1):
        assert rest[0] not in drawn
        reasons.append(review.progress().stop.reason)
    assert any("5 of 5 random relevant documents were reached" in reason for reason in reasons)


def test_what_cannot_be_used_is_named_and_stores_nothing(engine: Engine) -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"unit": "story"}, "unit 'story'"),
        ({"order": "luck"}, "order 'luck'"),
        ({"unit": "pairs", "order": "feedback"}, "needs one topic"),
        ({"per_seed": True}, "choose the unit 'pairs'"),
        ({"target": 1.5}, "target recall of 1.5"),
        ({"target": True}, "target = True"),
        ({"until": 0}, "until = 0"),
        ({"until": "many"}, "until = 'many'"),
    )
    for settings, message in wrong:
        with pytest.raises(InputError, match=message):
            Review(engine, ledger(**settings))
    review = Review(engine, ledger())
    with pytest.raises(InputError, match="unknown verdict 'perhaps'"):
        review.judge(Candidate("s1", "flood1", 1.0), "perhaps")  # type: ignore[arg-type]  # what a page may send
    with pytest.raises(InputError, match="'none' is not in the index"):
        review.judge(Candidate("s1", "none", 1.0), "not")
    assert not review.ledger.judgements()


@pytest.mark.parametrize("learns", [True, False])
def test_an_audit_of_an_order_that_learns_also_draws_from_its_front(engine: Engine, learns: bool) -> None:
    """After 25 documents from anywhere; the same document again after a restart; without learning, never."""
    pytest.importorskip("sklearn")
    kept = ledger(order="feedback" if learns else "z", audit=27, mode="bm25")
    review = Review(engine, kept)
    read(review, 5)
    review.begin_audit()
    phases = []
    for number in range(27):
        candidate = review.next()
        assert candidate is not None
        assert review.phase == "audit"
        phases.append(candidate.phase)
        if number == 25:
            assert candidate == Review(engine, kept).next()
            if learns:
                assert candidate.id in review._order.front(2)  # type: ignore[attr-defined]  # it learns
        review.judge(candidate, "not")
    assert phases == ["audit"] * 25 + ["front" if learns else "audit"] * 2
    assert review.phase == "queue"
    progress = review.progress()
    assert (progress.audited, progress.front) == (27, 2 * learns)
    assert ("by the order" in progress.price.lower()) == learns
