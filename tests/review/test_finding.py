"""The loop of `linker find`: when it stops, the effects of undo and quit, and that a second call continues."""

from collections.abc import Callable
from typing import Any

import pytest

from linker.base.errors import InputError
from linker.engine.engine import Engine
from linker.review.interface import Candidate, Judgement, Seed
from linker.review.session import Answer, FindLimits, Review, find
from tests.review.memory_ledger import MemoryLedger, engine_of


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return engine_of(tmp_path_factory.mktemp("finding") / "index", vectors=False)


SEEDS = (Seed("s1", "rain river valencia", document="flood0"), Seed("s2", "party election ballot"))


def ledger(**settings: Any) -> MemoryLedger:
    return MemoryLedger(SEEDS, **{"unit": "pairs", "order": "rank", **settings})


def by(seen: list[str]) -> Callable[[Candidate], Answer]:
    """Return a judge that knows the stories and records the documents it saw."""
    story = {"s1": "flood", "s2": "vote"}

    def judge(candidate: Candidate) -> Answer:
        seen.append(candidate.id)
        return "relevant" if candidate.id.startswith(story[candidate.seed]) else "not"

    return judge


def never(_: Candidate) -> Answer:
    raise AssertionError("nothing is left to ask")


def test_it_stops_at_enough_relevant_and_continues_with_more(engine: Engine) -> None:
    entries, seen = ledger(until=3), list[str]()
    first = find(Review(engine, entries), by(seen))
    assert (first.read, first.relevant, first.stopped) == (3, 3, "3 relevant found")
    assert find(Review(engine, entries), never).read == 3
    entries.set("until", 5)
    assert find(Review(engine, entries), by(seen)).relevant == 5
    assert len(seen) == len(entries.judgements()) == 5


def test_max_read_counts_earlier_reading_but_not_judgements_of_other_seeds(engine: Engine) -> None:
    kept = ledger()
    find(Review(engine, kept), by([]), FindLimits(max_read=2))
    assert find(Review(engine, kept), by([]), FindLimits(max_read=6)).stopped == "6 read"
    assert len(kept.judgements()) == 6
    kept = ledger(until=1)
    kept.add_all([Judgement("other", "flood3", "relevant")])
    assert find(Review(engine, kept), by([])).relevant == 1
    assert len(kept.judgements()) == 2


def test_a_score_ends_each_seed_at_its_own_place(engine: Engine) -> None:
    everything = Review(engine, ledger())
    scores = sorted(c.score for c in iter(lambda: _next_judged(everything), None))
    bar = scores[len(scores) // 2]
    entries = ledger(score=bar)
    assert find(Review(engine, entries), by([])).stopped == "every candidate was judged"
    told = [j.score for j in entries.judgements()]
    assert sorted(s for s in told if s is not None) == [s for s in scores if s >= bar]
    with pytest.raises(InputError, match="a threshold needs an order without feedback"):
        Review(engine, MemoryLedger(SEEDS, score=1.0))
    with pytest.raises(InputError, match="has no calibration"):
        Review(engine, ledger(threshold=0.5))


def _next_judged(review: Review) -> Candidate | None:
    candidate = review.next()
    if candidate is not None:
        review.judge(candidate, "not")
    return candidate


def test_undo_asks_again_and_quit_keeps_the_rest(engine: Engine) -> None:
    answers: list[Answer] = ["relevant", "relevant", "undo", "not", "relevant", "quit"]
    asked, entries = list[str](), ledger()

    def judge(candidate: Candidate) -> Answer:
        asked.append(candidate.id)
        return answers.pop(0)

    report = find(Review(engine, entries), judge)
    assert asked[3] == asked[1]
    assert asked[4] == asked[2]
    assert [j.verdict for j in entries.judgements()] == ["relevant", "not", "relevant"]
    assert (report.read, report.relevant, report.stopped) == (3, 2, "stopped by the reviewer")


def test_undo_with_nothing_given_asks_the_same_again(engine: Engine) -> None:
    answers: list[Answer] = ["undo", "no input"]
    report = find(Review(engine, ledger()), lambda _: answers.pop(0))
    assert report.read == 0
    assert report.stopped.startswith("no input: stdin is closed")


def test_the_rule_stops_and_with_an_audit_goes_on_to_certify(engine: Engine) -> None:
    pytest.importorskip("sklearn")
    options = {"rule": "row", "rule_options": {"gap": 8}, "audit": 5, "unit": "topic", "order": "feedback"}
    kept = MemoryLedger(SEEDS[:1], **options)
    report = find(Review(engine, kept), by([]), FindLimits(rule=True))
    assert report.estimated
    assert report.certified is None
    assert report.relevant >= 15
    certified = find(Review(engine, kept), by([]), FindLimits(rule=True, audit=True))
    assert certified.certified is not None
    assert certified.read > report.read
    assert sum(j.phase == "audit" for j in kept.judgements()) >= 5


def test_a_merge_goes_to_any_depth_and_knows_each_total(engine: Engine) -> None:
    review = Review(engine, ledger(order="z"))
    totals = {seed.id: review.total(seed.id) or 0 for seed in SEEDS}
    seen: list[str] = []
    find(review, by(seen))
    assert len(seen) == sum(totals.values())
    by_seed = [j.seed for j in review.ledger.judgements()]
    assert {seed: by_seed.count(seed) for seed in totals} == totals


def test_rank_first_takes_every_seeds_first_then_every_second(engine: Engine) -> None:
    review, ranks = Review(engine, ledger()), list[tuple[int, str]]()
    while candidate := review.next():
        ranks.append((candidate.rank, candidate.seed))
        review.judge(candidate, "not")
    assert [rank for rank, _ in ranks] == sorted(rank for rank, _ in ranks)
    expected = engine.search([s.text for s in SEEDS], 1000)
    assert len(ranks) == sum(map(len, expected.hits)) - ("flood0" in expected.hits[0].ids)
