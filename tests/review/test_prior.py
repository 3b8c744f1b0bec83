"""Imported verdicts are prior knowledge: they count as read and found, and their order means nothing."""

import csv
import random
from pathlib import Path

import pytest

from indexes.interface import Document
from linker.engine import Engine, building
from linker.review.exporting import export
from linker.review.importing import import_judgements
from linker.review.interface import Candidate, Judgement, Phase, Read, Seed
from linker.review.ledger import Ledger
from linker.review.session import FindLimits, Review, find, note_of
from linker.review.stopping import NAMES, make
from linker.review.stopping.bounds import short_of, urn_gap
from linker.review.stopping.evidence import Bets
from linker.review.stopping.rules import Hypergeometric, Urn

DOCUMENTS, RELEVANT, SCREENED = 600, 150, 120
PRIOR_HIT, PRIOR_MISS = Read(True, "prior"), Read(False, "prior")
HIT, MISS = Read(True), Read(False)


def is_relevant(id_: str) -> bool:
    return id_.startswith("r")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """600 short documents, 150 of them relevant."""
    folder = tmp_path_factory.mktemp("prior") / "index"
    building.create(folder, encoder="none")
    made = Engine(folder)
    words = ("rain", "river", "dam"), ("goal", "poll", "rain")
    made.add(
        [
            Document(f"{'r' if i < RELEVANT else 'n'}{i}", " ".join([*words[i >= RELEVANT], f"w{i}"]))
            for i in range(DOCUMENTS)
        ]
    )
    return made


def screened(path: Path) -> list[str]:
    """Write a random screening in ASReview's order: the relevant documents first, then the others."""
    drawn = random.Random(1).sample([*range(DOCUMENTS)], SCREENED)
    ids = sorted((f"{'r' if i < RELEVANT else 'n'}{i}" for i in drawn), key=is_relevant, reverse=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "asreview_label"])
        writer.writerows([id_, int(is_relevant(id_))] for id_ in ids)
    return ids


def reviewed(folder: Path, **settings: object) -> Ledger:
    ledger = Ledger(folder / "review.sqlite", durable=False)
    ledger.put_seeds([Seed("s", "rain river dam")])
    for key, value in {"unit": "topic", "order": "z", **settings}.items():
        ledger.set(key, value)
    return ledger


def test_a_random_screening_that_was_imported_claims_nothing(engine: Engine, tmp_path: Path) -> None:
    ids = screened(tmp_path / "x.csv")
    ledger = reviewed(tmp_path)
    import_judgements(tmp_path / "x.csv", ledger, reviewer="ana")
    found = sum(map(is_relevant, ids))
    assert found / RELEVANT < 0.25
    for review in (Review(engine, ledger), Review(engine, Ledger(ledger.path))):
        progress = review.progress()
        assert (progress.read, progress.prior, progress.found) == (SCREENED, SCREENED, found)
        assert list(progress.curve) == []
        assert not progress.stop.estimated
        assert progress.stop.certified is None
        note = note_of(review)
        assert note is not None
        assert "at least" not in note.text
        assert f"{SCREENED} of them had been judged before and were imported" in note.text


def test_a_random_screening_that_says_so_counts_for_the_certificate(engine: Engine, tmp_path: Path) -> None:
    ids = screened(tmp_path / "x.csv")
    ledger = reviewed(tmp_path)
    import_judgements(tmp_path / "x.csv", ledger, reviewer="ana", random=True)
    review = Review(engine, ledger)
    found = sum(map(is_relevant, ids))
    progress = review.progress()
    assert (progress.audited, progress.found) == (SCREENED, found)
    assert not progress.stop.estimated
    assert progress.stop.left is not None
    assert RELEVANT - found <= progress.stop.left < 3 * (RELEVANT - found)
    candidate = review.next()
    assert candidate is not None
    assert candidate.phase == "queue"


def test_what_an_earlier_linker_imported_is_prior_knowledge_too(engine: Engine, tmp_path: Path) -> None:
    """It was stored as if it had been read in the queue, but no order had proposed it."""
    ids = screened(tmp_path / "x.csv")
    ledger = reviewed(tmp_path)
    ledger.add_all(Judgement("s", i, "relevant" if is_relevant(i) else "not") for i in ids)
    progress = Review(engine, ledger).progress()
    assert (progress.prior, progress.stop.estimated) == (SCREENED, False)


def test_after_an_import_the_review_goes_on_and_reaches_its_target(engine: Engine, tmp_path: Path) -> None:
    screened(tmp_path / "x.csv")
    ledger = reviewed(tmp_path)
    import_judgements(tmp_path / "x.csv", ledger, reviewer="ana")
    review = Review(engine, ledger)
    report = find(review, lambda c: "relevant" if is_relevant(c.id) else "not", FindLimits(rule=True))
    assert report.estimated
    assert report.relevant >= 0.9 * RELEVANT
    progress = review.progress()
    assert len(progress.curve) == progress.read - SCREENED
    assert progress.curve[-1] == progress.found
    export(ledger, None, tmp_path / "x.run")
    assert len((tmp_path / "x.run").read_text(encoding="utf-8").splitlines()) == len(progress.curve)


def test_a_limit_of_reads_does_not_count_what_was_imported(engine: Engine, tmp_path: Path) -> None:
    screened(tmp_path / "x.csv")
    ledger = reviewed(tmp_path)
    import_judgements(tmp_path / "x.csv", ledger)
    report = find(Review(engine, ledger), lambda _: "not", FindLimits(max_read=5))
    assert (report.read, report.stopped) == (SCREENED + 5, "5 read")


def test_imported_documents_outside_the_population_do_not_count(engine: Engine, tmp_path: Path) -> None:
    ledger = reviewed(tmp_path)
    ledger.put_seeds([Seed("s", "rain river dam", document="r0")])
    (tmp_path / "x.csv").write_text(
        "id,included\nr0,1\nr1,1\nn599,0\nelsewhere,1\nnowhere,0\n", encoding="utf-8"
    )
    assert import_judgements(tmp_path / "x.csv", ledger).added == 5
    progress = Review(engine, ledger).progress()
    assert (progress.read, progress.found, progress.population) == (2, 1, DOCUMENTS - 1)


def test_what_was_read_here_stays_so_when_an_import_repeats_it(engine: Engine, tmp_path: Path) -> None:
    """Neither a colleague's table nor a resolved conflict moves a document or removes it from an audit."""
    ledger = reviewed(tmp_path)
    phases: tuple[Phase, ...] = ("queue", "audit", "queue")
    for id_, phase in zip(("r1", "n500", "n501"), phases, strict=True):
        ledger.add(Judgement("s", id_, "not", "ana", model="m", phase=phase))
    (tmp_path / "x.csv").write_text("id,verdict,reviewer\nr1,relevant,ben\nn500,not,ben\n", encoding="utf-8")
    import_judgements(tmp_path / "x.csv", ledger)
    review = Review(engine, ledger)
    progress = review.progress()
    assert (progress.read, progress.prior, progress.audited) == (3, 0, 1)
    assert list(progress.curve) == [1, 1, 1]
    again = review.judge(Candidate("s", "n500", 0.0), "not", "cem")
    assert Review(engine, ledger).progress() == again


def test_an_import_does_not_reveal_a_control(engine: Engine, tmp_path: Path) -> None:
    ledger = reviewed(tmp_path, rule="qbcb", target=0.5, rule_options={"controls": 5})
    review = Review(engine, ledger)
    while (candidate := review.next("ana")) and candidate.phase == "control":
        review.judge(candidate, "relevant" if is_relevant(candidate.id) else "not", "ana")
    drawn = ledger.judgements()
    (tmp_path / "x.csv").write_text(
        "id,verdict\n" + "".join(f"{j.id},{j.verdict}\n" for j in drawn), encoding="utf-8"
    )
    import_judgements(tmp_path / "x.csv", ledger, reviewer="ben")
    labels: list[str] = []
    review = Review(engine, ledger)
    review._order.tell = lambda judgement: labels.append(judgement.id)  # type: ignore[method-assign]
    review._restart()
    assert labels == []
    assert review.progress().found == 5


@pytest.mark.parametrize("name", NAMES)
def test_no_order_of_a_file_changes_what_a_rule_says(name: str) -> None:
    chance = random.Random(3)
    prior = [PRIOR_HIT] * 40 + [PRIOR_MISS] * 760
    rules = []
    for _ in range(3):
        rule = make(name, 10_000, 0.9)
        for read in [*[HIT] * 3, *[MISS] * 60, *prior, *[HIT] * 20, *[MISS] * 90]:
            rule.update(read)
        rules.append(rule)
        chance.shuffle(prior)
    assert rules[0].state == rules[1].state == rules[2].state
    assert rules[0].counts.found == 63
    assert rules[0].counts.unread == 10_000 - 63 - 60 - 760 - 90


def test_the_evidence_begins_after_the_import() -> None:
    """The urn holds the unread documents and the gap since; documents found elsewhere count only in the recall."""
    urn = make("urn", 10_000, 0.9)
    assert isinstance(urn, Urn)
    for read in [HIT, *[MISS] * 500, *[PRIOR_HIT] * 59, *[PRIOR_MISS] * 700]:
        urn.update(read)
    assert urn.counts.gap == 0
    assert urn.wanted == urn_gap(10_000 - 1260, short_of(60, 0.9), urn.w, 0.05)
    for _ in range(urn.wanted - 1):
        assert not urn.update(MISS).estimated
    assert urn.update(MISS).estimated
    again = make("urn", 10_000, 0.9)
    for read in [HIT, *[MISS] * 30, PRIOR_MISS]:  # even if nothing relevant was imported
        again.update(read)
    assert again.counts.gap == 0
    habit = make("row", 10_000, 0.9, {"gap": 50})
    for read in [*[PRIOR_HIT] * 20, *[PRIOR_MISS] * 700, *[MISS] * 49]:
        assert not habit.update(read).estimated
    assert habit.update(MISS).estimated
    reads = make("reads", 10_000, 0.9, {"reads": 10})
    for read in [*[PRIOR_MISS] * 700, *[MISS] * 9]:
        assert not reads.update(read).stop
    assert reads.update(MISS).stop


def test_no_urn_of_the_hypergeometric_rule_begins_before_the_import() -> None:
    """Its result equals that for a review of the rest with the earlier finds known from the start."""
    rule = Hypergeometric(2000, 0.95)
    for read in [*[MISS] * 600, *[PRIOR_HIT] * 38, *[PRIOR_MISS] * 100]:
        rule.update(read)
    assert rule.p == 0.5
    for _ in range(1062):  # with the 600 before the import, this would long have been enough
        rule.update(MISS)
    # 200 are unread, and 1262 were when the evidence began: K = 3, P(0 of 3 among 1062 of 1262) = .0039
    assert rule.p == pytest.approx(0.0039, abs=5e-5)
    rule = Hypergeometric(2000, 0.95)
    for read in [*[MISS] * 600, *[PRIOR_HIT] * 38, *[PRIOR_MISS] * 100, *[MISS] * 700]:
        state = rule.update(read)
    assert not state.estimated


def test_an_audit_that_an_import_interrupts_still_certifies_what_it_drew() -> None:
    rule = make("urn", 11_000, 0.8)
    audit = Read(False, "audit")
    for read in [
        *[HIT] * 100,
        *[MISS] * 100,
        *[audit] * 100,
        *[PRIOR_HIT] * 5,
        *[PRIOR_MISS] * 50,
        *[audit] * 200,
    ]:
        state = rule.update(read)
    both = Bets(0.05, 0.8)
    for unread, found in [*((10_800 - n, 100) for n in range(100)), *((10_645 - n, 105) for n in range(200))]:
        both.take(unread, found, relevant=False)
    assert state.left == both.most(10_445, 105) - 105
    assert rule.audit.count == 1


def test_the_default_claim_holds_after_a_random_screening() -> None:
    """60 reviews with a ranking twice as good as the rule assumes, after 800 random documents."""
    wrong = claimed = 0
    for seed in range(60):
        chance = random.Random(seed)
        unread, known = chance.randint(20, 200), chance.randint(2, 30)
        rule = make("urn", 10_000, 0.9)
        for read in [*[PRIOR_HIT] * known, *[PRIOR_MISS] * (800 - known)]:
            state = rule.update(read)
        assert not state.estimated
        others, found = 9200 - unread, known
        total = known + unread
        while not state.estimated and not state.stop:
            relevant = chance.random() < 120 * unread / (120 * unread + others)
            unread, others, found = unread - relevant, others - (not relevant), found + relevant
            state = rule.update(Read(relevant))
        claimed += state.estimated
        wrong += state.estimated and found < 0.9 * total
    assert claimed == 60
    assert wrong <= 3
