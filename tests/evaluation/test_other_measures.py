"""RBP, ERR, infAP and judged@k against the tools that define them; names as papers spell them."""

from __future__ import annotations

import random

import ir_measures
import pytest
import pytrec_eval
from ir_measures import ERR, Judged

from linker.base.errors import InputError
from linker.evaluation import evaluate
from linker.evaluation.names import parse

Nested = dict[str, dict[str, int]]


def cases() -> list[tuple[Nested, dict[str, dict[str, float]]]]:
    rng = random.Random(3)
    return [
        (
            {
                str(t): {f"d{i}": rng.choice([-1, 0, 0, 1, 2, 3, 4]) for i in rng.sample(range(40), 20)}
                for t in range(1, 6)
            },
            {
                str(t): {
                    f"d{i}": round(rng.random() * 30) + i / 64
                    for i in rng.sample(range(40), rng.randint(3, 30))
                }
                for t in range(1, 5)
            },
        )
        for _ in range(25)
    ]


@pytest.mark.parametrize("level", [1, 2])
def test_the_tools_that_define_them_agree(level: int) -> None:
    for qrels, run in cases():
        mine = evaluate(qrels, run, "infAP judged@5,10 ERR@3,20 RBP(p=0.8) rbp.0.95", level=level)
        inferred = pytrec_eval.RelevanceEvaluator(qrels, ["infAP"], relevance_level=level).evaluate(run)
        for topic, values in inferred.items():
            assert mine.topic(topic)["infAP"] == pytest.approx(values["infAP"], abs=1e-14)
        for metric in ir_measures.judged.iter_calc([Judged @ 5, Judged @ 10], qrels, run):
            assert mine.topic(metric.query_id)[f"judged_{metric.measure['cutoff']}"] == metric.value
        for metric in ir_measures.gdeval.iter_calc([ERR @ 3, ERR @ 20], qrels, run):  # prints five digits
            value = mine.topic(metric.query_id)[f"err_{metric.measure['cutoff']}"]
            assert value == pytest.approx(metric.value, abs=6e-6)


@pytest.mark.parametrize("level", [1, 2])
def test_rbp_is_its_definition(level: int) -> None:
    for qrels, run in cases():
        mine = evaluate(qrels, run, "rbp.0.8,0.95", level=level)
        for topic, documents in run.items():
            order = sorted(documents, key=lambda d: (-documents[d], d))
            for p in (0.8, 0.95):
                gained = [p**i for i, d in enumerate(order) if qrels[topic].get(d, 0) >= level]
                assert mine.topic(topic)[f"rbp_{p}"] == pytest.approx((1 - p) * sum(gained), abs=1e-14)


def test_most_and_judged_only_shorten_the_ranking() -> None:
    for qrels, run in cases()[:5]:
        first = {t: dict(sorted(d.items(), key=lambda e: (-e[1], e[0]))[:4]) for t, d in run.items()}
        names = "infAP judged@10 rbp.0.8 err.20"
        assert dict(evaluate(qrels, run, names, most=4)) == dict(evaluate(qrels, first, names))
        some = {t: {d: s for d, s in docs.items() if qrels[t].get(d, -1) >= 0} for t, docs in run.items()}
        nonnegative = {t: {d: r for d, r in judged.items() if r >= 0} for t, judged in qrels.items()}
        assert dict(evaluate(qrels, run, names, judged_only=True)) == dict(evaluate(nonnegative, some, names))


def test_names_as_papers_and_ir_measures_spell_them() -> None:
    names = "AP MAP nDCG@10 P@5 Recall@100 R@5 RR MRR@10 Success@1 SetP SetR SetF Judged@10 ERR@20 RBP(p=0.5) infAP"
    assert [str(m) for m in parse(names)] == [
        "map", "recip_rank", "P_5", "recall_5", "recall_100", "ndcg_cut_10", "success_1", "set_P", "set_recall",
        "set_F", "recip_rank_cut_10", "infAP", "judged_10", "rbp_0.5", "err_20",
    ]  # fmt: skip
    titles = [
        m.title for m in parse("map mrr@10 ndcg@10 P@5 recall.100 iprec.0.1 success.1 rbp.0.8 bpref num_q")
    ]
    assert titles == [
        "num_q", "MAP", "bpref", "iPrec@0.1", "P@5", "Recall@100", "nDCG@10", "Success@1", "MRR@10", "RBP(p=0.8)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("P(rel=2)@5", "takes no parameter 'rel': give the relevance level"),
        ("RBP(p=2)", "a persistence must lie between 0 and 1"),
        ("RBP(p=0.8)@10", "takes no parameter"),
        ("nonsense(p=1)", "takes no parameter"),
        ("judged@0", "must be a positive integer"),
    ],
)
def test_what_a_name_cannot_say(name: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse(name)


def test_err_needs_relevances_up_to_four() -> None:
    with pytest.raises(InputError, match=r"relevances of 0 to 4, and there is 5"):
        evaluate({"q": {"a": 5}}, {"q": {"a": 1.0}}, "ERR@20")
