"""Cohen's κ against scikit-learn's, conflicts and their resolution; doubtful verdicts against a slow oracle."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score

from linker.base.errors import InputError
from linker.review.agreement import CONSENSUS, agreement, decided, resolve, two_reviewers
from linker.review.interface import VERDICTS, Judgement, Verdict
from linker.review.learning.doubts import (
    LEAST,
    LOOKS,
    PRIOR,
    ROUNDS,
    WRONG,
    doubted,
    looked,
    probabilities,
    verdicts,
)
from linker.review.ledger import Ledger


def said(reviewer: str, id_: str, verdict: Verdict = "relevant", seed: str = "s") -> Judgement:
    return Judgement(seed, id_, verdict, reviewer)


def test_a_worked_table() -> None:
    """20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed .7, expected .5, κ .4."""
    yes, no = VERDICTS[:2]
    pairs = [(yes, yes)] * 20 + [(yes, no)] * 5 + [(no, yes)] * 10 + [(no, no)] * 15
    judgements = [j for n, (a, b) in enumerate(pairs) for j in (said("a", f"d{n}", a), said("b", f"d{n}", b))]
    found = agreement(judgements, "a", "b")
    assert (found.both, found.agreed, len(found.conflicts)) == (50, 35, 15)
    assert found.kappa == pytest.approx(0.4)
    assert found.table["not", "relevant"] == 10


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(VERDICTS), st.sampled_from(VERDICTS)), max_size=30))
def test_kappa_is_scikit_learns(pairs: list[tuple[Verdict, Verdict]]) -> None:
    judgements = [j for n, (a, b) in enumerate(pairs) for j in (said("a", str(n), a), said("b", str(n), b))]
    both = [(a, b) for a, b in pairs if "skip" not in (a, b)]
    kappa = agreement(judgements, "a", "b").kappa
    if not both:
        assert kappa is None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it divides by zero if there is only one kind of verdict
        expected = cohen_kappa_score(*zip(*both, strict=True))
    assert kappa == pytest.approx(expected) if kappa is not None else expected != expected


def test_a_conflict_is_resolved_by_a_third_entry(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l")
    ledger.add_all(
        [
            said("ana", "x"),
            said("ana", "y"),
            said("ben", "y", "not"),
            said("ben", "x"),
            said("ana", "z", "skip"),
        ]
    )
    assert [(j.reviewer, j.id) for j in decided(ledger.judgements())] == [("ana", "x")]
    (conflict,) = agreement(ledger.judgements(), "ana", "ben").conflicts
    assert (conflict.first.verdict, conflict.second.verdict, conflict.resolution) == ("relevant", "not", None)
    decision = resolve(ledger, conflict, "not", "cem", "an older flood")
    after = agreement(ledger.judgements(), *two_reviewers(ledger.reviewers))
    assert after.conflicts[0].resolution == decision
    assert after.agreed == 1  # the two original verdicts stay
    assert (decision.reviewer, decision.tags, decision.note) == (CONSENSUS, ("by:cem",), "an older flood")
    assert {(j.id, j.verdict) for j in decided(ledger.judgements())} == {("x", "relevant"), ("y", "not")}


def test_a_topic_is_compared_by_document_whatever_the_seed() -> None:
    judgements = [said("a", "x", seed="s1"), said("b", "x", "not", seed="s2"), said("a", "y", seed="s1")]
    assert agreement(judgements, "a", "b").both == 0
    assert agreement(judgements, "a", "b", by_document=True).both == 1
    assert [j.id for j in decided(judgements, by_document=True)] == ["y"]


@pytest.mark.parametrize("names", [[], ["a"], ["a", "b", "c"], ["a", CONSENSUS]])
def test_it_takes_two(names: list[str]) -> None:
    with pytest.raises(InputError, match="name two from this ledger"):
        two_reviewers(names)
    assert two_reviewers(["a", "b", "c"], "c", "a") == ("c", "a")
    with pytest.raises(InputError):
        two_reviewers(["a", "b"], "a", "none")


def review(relevant: int, others: int, wrong: int) -> tuple[list[Judgement], dict[tuple[str, str], float]]:
    """Return verdicts, and scores that tell relevant documents from others; the first `wrong` others count as found."""
    chance = np.random.default_rng(0)
    scores = np.concatenate([chance.normal(2, 1, relevant), chance.normal(-2, 1, others)])
    said = [True] * (relevant + wrong) + [False] * (others - wrong)
    judged = [Judgement("", str(n), "relevant" if v else "not") for n, v in enumerate(said)]
    return judged, {("", str(n)): float(score) for n, score in enumerate(scores)}


def again(judgement: Judgement, relevant: bool) -> Judgement:
    """Return a verdict after one more look."""
    tags = looked(judgement.tags, changed=relevant != judgement.relevant)
    return Judgement("", judgement.id, "relevant" if relevant else "not", tags=tags)


def test_verdicts_are_read_back_from_the_tags_of_looks() -> None:
    first = Judgement("", "a", "relevant", tags=("mine",))
    second = again(first, relevant=False)
    third = again(second, relevant=False)
    assert verdicts(first) == [True]
    assert verdicts(second) == [False, True]
    assert verdicts(third) == [False, False, True]
    assert third.tags == ("mine", "second look, changed", "third look")
    assert looked(third.tags, changed=True) == third.tags


def test_probabilities_agree_with_a_slow_oracle() -> None:
    judged, scores = review(40, 200, 10)
    votes = [(float(sum(v)), float(len(v) - sum(v))) for v in map(verdicts, judged)]
    votes[0], votes[45] = (1.0, 1.0), (2.0, 1.0)
    z = list(scores.values())
    p = [1 / (1 + math.exp((b - a) * math.log(PRIOR[1] / PRIOR[0] - 1))) for a, b in votes]
    for _ in range(ROUNDS):
        wrong = sum((1 - q) * a + q * b for q, (a, b) in zip(p, votes, strict=True))
        rate = (wrong + PRIOR[0]) / (sum(a + b for a, b in votes) + PRIOR[1])
        found, others = sum(p), len(p) - sum(p)
        target = [q * (found + 1) / (found + 2) + (1 - q) / (others + 2) for q in p]
        model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
        twice = np.array([*z, *z])[:, None]
        model.fit(twice, [1] * len(z) + [0] * len(z), sample_weight=[*target, *(1 - t for t in target)])
        odds = model.decision_function(np.array(z)[:, None])
        lead = math.log((1 - rate) / rate)
        p = [1 / (1 + math.exp(-o - (a - b) * lead)) for o, (a, b) in zip(odds, votes, strict=True)]
    assert probabilities(np.array(votes), np.array(z)) == pytest.approx(p, abs=2e-3)


def test_wrong_finds_are_listed_and_right_verdicts_are_not() -> None:
    judged, scores = review(40, 400, 20)
    listed = [int(doubt.judgement.id) for doubt in doubted(judged, scores) or ()]
    assert len(set(listed) & set(range(40, 60))) >= 15
    assert len(listed) <= 25
    assert len(doubted(*review(40, 400, 0)) or ()) <= 1


def test_the_list_leaves_as_many_improbable_finds_as_it_may() -> None:
    judged, scores = review(40, 400, 20)
    listed = {doubt.judgement.id for doubt in doubted(judged, scores) or ()}
    votes = np.array([[j.relevant, not j.relevant] for j in judged], dtype=np.float64)
    wrong = 1 - probabilities(votes, np.array([*scores.values()]))
    found = sorted((w, j.id) for w, j in zip(wrong, judged, strict=True) if j.relevant)
    unlisted = sum(w for w, id_ in found if id_ not in listed)
    most = WRONG * len(found)
    assert unlisted <= most < unlisted + min(w for w, id_ in found if id_ in listed)


def test_looks_settle_verdicts_and_change_how_far_others_are_believed() -> None:
    judged, scores = review(40, 400, 20)
    before = {doubt.judgement.id: doubt.probability for doubt in doubted(judged, scores) or ()}
    one, other = (j for j in judged if j.id in [*before][:2])
    probable = {}
    for is_right in (False, True):
        after = [again(j, relevant=is_right) if j.id in [*before][2:12] else j for j in judged]
        probable[is_right] = {doubt.judgement.id: doubt.probability for doubt in doubted(after, scores) or ()}
    assert probable[False][one.id] < probable[True].get(one.id, 1.0)
    settled = again(again(other, relevant=True), relevant=True)
    assert settled.tags == LOOKS
    assert other.id not in {
        d.judgement.id for d in doubted([settled if j is other else j for j in judged], scores) or ()
    }


def test_nothing_is_listed_for_too_few_verdicts() -> None:
    assert doubted(*review(LEAST - 1, 100, 0)) is None
    judged, scores = review(LEAST + 3, 60, 3)
    assert doubted(judged, {}) is None
    assert doubted(judged, scores)
