"""Accepting rows unread: worked examples, and simulations of both bounds on random data."""

import math

import numpy as np
import pytest

from linker.base.errors import InputError
from linker.review.interface import Judgement, Seed
from linker.review.rows.accepting import Check, drawn, most_wrong, offer
from linker.review.rows.candidates import Match, Matches
from linker.review.rows.states import Row, states


def rows_of(probabilities: list[float], *judgements: Judgement) -> list[Row]:
    seeds = [Seed(f"s{i}", "text") for i in range(len(probabilities))]
    found = {f"s{i}": (Match(f"d{i}", p), Match("other", 0.01)) for i, p in enumerate(probabilities)}
    return states(seeds, found, judgements)


def said(i: int, verdict: str, id_: str | None = None, phase: str = "queue") -> Judgement:
    name = f"d{i}" if id_ is None else id_
    return Judgement(f"s{i}", name, verdict, "ana", phase=phase)  # type: ignore[arg-type]


NOTHING = Matches("", {})


def test_expected_wrong_is_the_sum_and_the_most_is_by_the_binomial_distribution() -> None:
    found = offer(rows_of([0.99, 0.96, 0.95, 0.94, 0.5]), NOTHING, 0.95)
    assert [row.seed.id for row, _ in found.links] == ["s0", "s1", "s2"]
    assert found.expected == pytest.approx(0.01 + 0.04 + 0.05)
    assert found.most is None
    assert found.check is not None
    assert (found.check.size, len(found.check.pairs), found.under_way) == (2, 3, False)
    # P(Binomial(31, .05) ≤ 4) = .9847 and P(… ≤ 3) = .9285: 4 is exceeded with probability .0153.
    assert most_wrong(31, 0.95, 0.025) == 4
    assert most_wrong(312, 0.95, 0.025) == 24
    assert most_wrong(0, 0.95, 0.025) == 0


def test_what_was_decided_or_refused_is_not_offered_nor_is_a_level_of_its_own() -> None:
    rows = rows_of([0.99, 0.98, 0.97], said(0, "relevant"), said(1, "not"), said(2, "not", "", "row"))
    assert offer(rows, NOTHING, 0.95).links == ()
    with pytest.raises(InputError, match=r"unsupported level 0.5: choose one of 0.99, 0.95, 0.9, 0.8"):
        offer([], NOTHING, 0.5)


def test_the_promise_of_a_calibration_bounds_what_nobody_has_read() -> None:
    probabilities = tuple(np.linspace(0.5, 1, 400).tolist())
    matches = Matches("", {}, 0, probabilities, tuple(p > 0.6 for p in probabilities))
    promise = matches.promise(0.95, 0.025)
    assert promise is not None
    rows = rows_of([0.99] * 40)
    found = offer(rows, matches, 0.95)
    assert (len(found.links), found.most, found.held) == (40, most_wrong(40, 0.95, 0.025), 400)
    # Two rows that were read and found wrong are part of the bound, so fewer can be left.
    read = offer(
        rows_of([0.99] * 40, said(0, "not"), said(1, "not", "", "row"), said(2, "relevant")), matches, 0.95
    )
    assert (len(read.links), read.most) == (37, found.most - 2)  # type: ignore[operator]


def test_a_check_certifies_once_all_of_it_is_read() -> None:
    rows = rows_of([0.97] * 31)
    begun = offer(rows, NOTHING, 0.95).check
    assert begun is not None
    assert (begun.size, begun.number) == (16, 1)
    sample = [int(seed[1:]) for seed, _ in begun.sample]
    under_way = offer(rows_of([0.97] * 31, *(said(i, "relevant") for i in sample[:-1])), NOTHING, 0.95, begun)
    assert (under_way.most, under_way.unread, under_way.wrong, under_way.under_way) == (None, 1, 0, True)
    judged = [*(said(i, "relevant") for i in sample[:-1]), said(sample[-1], "not")]
    done = offer(rows_of([0.97] * 31, *judged), NOTHING, 0.95, begun)
    assert (len(done.links), done.unread, done.wrong, done.under_way) == (15, 0, 1, False)
    # By hand: the smallest K with P(at most 1 wrong of 16 | K of 31 are wrong) ≤ .025, minus one.
    tails = {
        k: sum(math.comb(k, x) * math.comb(31 - k, 16 - x) for x in (0, 1)) / math.comb(31, 16)
        for k in range(1, 16)
    }
    assert done.most == min(k for k in tails if tails[k] <= 0.025) - 1 - 1
    assert drawn(done.links, 0.95, begun).number == 2  # type: ignore[union-attr]
    assert offer(rows, NOTHING, 0.9, begun).check != begun  # another level needs its own check


def test_a_check_survives_the_settings_of_a_ledger() -> None:
    check = Check(0.95, (("s", "d"),), 1, 1)
    stored = {"level": 0.95, "pairs": [["s", "d"]], "size": 1, "number": 1}
    assert Check.of(stored) == check
    assert Check.of(None) is None
    with pytest.raises(InputError, match="the check in the review's settings cannot be read"):
        Check.of({"pairs": 3})


def test_the_bound_of_a_check_is_broken_in_its_share_of_reviews_at_most() -> None:
    """400 reviews of 200 rows whose best candidates are right with an arbitrary probability."""
    generator, broken = np.random.default_rng(1), 0
    for _ in range(400):
        rows = rows_of([0.96] * 200)
        right = generator.random(200) < generator.uniform(0.5, 1)
        begun = drawn(offer(rows, NOTHING, 0.95).links, 0.95)
        assert begun is not None
        shuffled = generator.permutation(200)  # the choice of right ones is random as well
        number = {f"s{i}": int(place) for i, place in enumerate(shuffled)}
        wrong = sum(not right[number[seed]] for seed, _ in begun.sample)
        rest = sum(not right[number[seed]] for seed, _ in begun.pairs[begun.size :])
        broken += rest > begun.most(wrong)
    assert broken / 400 <= 0.025 + 0.02


def test_the_promise_is_broken_in_its_share_of_reviews_at_most() -> None:
    """300 calibrations, each with a review of 150 rows drawn like its links; readers judged some with the highest
    P."""
    generator, broken, promised = np.random.default_rng(2), 0, 0
    for _ in range(300):
        chance = generator.beta(4, 1, size=450)
        right = generator.random(450) < chance**1.15  # the probabilities are too high
        matches = Matches("", {}, 0, tuple(chance[:300].tolist()), tuple(right[:300].tolist()))
        rows = rows_of(chance[300:].tolist())
        for row in sorted(rows, key=lambda row: -row.probability)[: int(generator.integers(0, 40))]:
            row.take(said(row.number - 1, "relevant" if right[299 + row.number] else "not"))
        found = offer(rows, matches, 0.9)
        if found.most is not None:
            promised += 1
            broken += sum(not right[299 + row.number] for row, _ in found.links) > found.most
    assert promised > 100
    assert broken / promised <= 0.05
