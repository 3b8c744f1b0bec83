"""Cohen's κ against scikit-learn's, conflicts, and their resolution by a third entry."""

import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from linker.base.errors import InputError
from linker.review.agreement import CONSENSUS, agreement, decided, resolve, two_reviewers
from linker.review.interface import VERDICTS, Judgement, Verdict
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
    with pytest.raises(InputError, match="name two of those"):
        two_reviewers(names)
    assert two_reviewers(["a", "b", "c"], "c", "a") == ("c", "a")
    with pytest.raises(InputError):
        two_reviewers(["a", "b"], "a", "none")
