"""Differential fuzzing: pytrec_eval-terrier (trec_eval 9's own C code) for version 9, the slow oracle for 10."""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from linker.evaluation import evaluate
from linker.evaluation.order import Compat
from tests.evaluation.oracle import ALL, POOL, random_case, relevances, topic_values

BATCH = 500


def check_against_c(
    qrels: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Mapping[str, float]],
    level: int,
    judged_only: bool,
) -> None:
    """Every value of every shared topic must be the same double."""
    reference = pytrec_eval.RelevanceEvaluator(
        qrels, set(ALL), relevance_level=level, judged_docs_only_flag=judged_only
    ).evaluate(run)
    mine = evaluate(qrels, run, ALL, level=level, judged_only=judged_only)
    assert {t for t, done in zip(mine.topic_ids, mine.answered, strict=True) if done} == set(reference)
    for topic, values in reference.items():
        got = mine.topic(topic)
        if got != values:
            # the C code divides 0 by 0 when -J leaves nothing; we return 0
            empty = {n for n, v in values.items() if math.isnan(v) and got["num_ret"] == 0 == got[n]}
            wrong = {n: (v, got.get(n)) for n, v in values.items() if n not in empty and got.get(n) != v}
            assert not wrong and set(got) == set(values), (wrong, topic, qrels, run, level, judged_only)


@pytest.mark.parametrize("seed", range(21))
def test_equals_trec_eval_9(seed: int) -> None:
    """21 × 500 = 10,500 generated cases, no difference in any measure, to the last bit.

    Some are evaluated alone and most as topics of one run, which costs a tenth.
    """
    rng = random.Random(seed)
    cases = [random_case(rng) for _ in range(BATCH)]
    while cases:
        some = [cases.pop() for _ in range(min(len(cases), rng.choice((1, 10, 40))))]
        qrels, run = (joined([case[part] for case in some]) for part in (0, 1))
        check_against_c(qrels, run, rng.choice((1, 1, 1, 2, 3)), rng.random() < 0.2)


def joined(cases: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, Mapping[str, Any]]:
    """Return the topics of all cases; a case that is alone keeps their names."""
    return {
        f"{topic}/{n}" if n else topic: lines for n, case in enumerate(cases) for topic, lines in case.items()
    }


@pytest.mark.parametrize("compat", ["trec_eval-9", "trec_eval-10"])
@pytest.mark.parametrize("seed", range(2))
def test_equals_the_slow_oracle(seed: int, compat: Compat) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(BATCH // 2):
        qrels, run = random_case(rng)
        level, judged_only = rng.choice((1, 2)), rng.random() < 0.3
        most = rng.choice((None, None, 1, 3, 10))
        mine = evaluate(qrels, run, ALL, level=level, judged_only=judged_only, most=most, compat=compat)
        for topic in set(qrels) & set(run):
            rels = relevances(qrels[topic], run[topic], compat, judged_only, most)
            expected = topic_values(qrels[topic], rels, level, compat)
            assert mine.topic(topic) == pytest.approx(expected, abs=1e-13), (
                topic, qrels, run, level, judged_only, most,
            )  # fmt: skip


ids = st.one_of(
    st.sampled_from(POOL),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20),
)
scores = st.one_of(st.integers(-3, 3).map(float), st.floats(allow_nan=False))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.dictionaries(
        ids, st.dictionaries(ids, st.integers(0, 4), min_size=1, max_size=8), min_size=1, max_size=4
    ),
    st.dictionaries(ids, st.dictionaries(ids, scores, min_size=1, max_size=12), max_size=4),
    st.integers(1, 3),
    st.booleans(),
)
def test_hypothesis_finds_no_difference(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]], level: int, judged_only: bool
) -> None:
    topic = next(iter(qrels))
    run.setdefault(topic, dict.fromkeys(qrels[topic], 1.0))
    check_against_c(qrels, run, level, judged_only)
