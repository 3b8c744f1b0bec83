"""linker as a provider for ir_measures: the same numbers as its own providers."""

import random
from typing import Any

import ir_measures
import pytest
from ir_measures import (
    AP,
    ERR,
    RBP,
    RR,
    Bpref,
    IPrec,
    Judged,
    NumQ,
    NumRel,
    NumRet,
    P,
    R,
    Rprec,
    ScoredDoc,
    SetF,
    SetP,
    SetR,
    Success,
    infAP,
    nDCG,
)  # fmt: skip

from linker.integrations.ir_measures import provider

MEASURES = [
    P @ 5, P(rel=2) @ 10, RR, RR(rel=2), Rprec, AP, AP(rel=2), AP @ 7, AP(judged_only=True), nDCG, nDCG @ 10,
    nDCG(judged_only=True) @ 5, R @ 10, Bpref, NumRet, NumRet(rel=1), NumRel, NumQ, SetP, SetR, SetF,
    Success @ 3, IPrec @ 0.1, infAP, infAP(rel=2),
]  # fmt: skip


def case(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    rng = random.Random(seed)
    docs = [f"d{i}" for i in range(40)]
    qrels = {f"{t}": {d: rng.choice([-1, 0, 1, 2, 3]) for d in rng.sample(docs, 20)} for t in range(6)}
    run = {
        f"{t}": {d: rng.randint(0, 20) / 4 for d in rng.sample(docs, rng.randint(1, 30))} for t in range(1, 8)
    }
    return qrels, run


def values(metrics: Any) -> dict[tuple[str, str], float]:
    return {(m.query_id, str(m.measure)): m.value for m in metrics}


@pytest.mark.parametrize("seed", range(8))
def test_the_numbers_are_pytrec_evals(seed: int) -> None:
    qrels, run = case(seed)
    theirs = values(ir_measures.pytrec_eval.iter_calc(MEASURES, qrels, run))
    mine = values(provider.iter_calc(MEASURES, qrels, run))
    assert mine.keys() == theirs.keys()
    assert {k: v for k, v in mine.items() if v != pytest.approx(theirs[k], abs=1e-15)} == {}
    assert provider.calc_aggregate(MEASURES, qrels, run) == pytest.approx(
        ir_measures.pytrec_eval.calc_aggregate(MEASURES, qrels, run), abs=1e-12
    )


def test_other_measures_inputs_and_support() -> None:
    qrels, run = case(1)
    rows = [ScoredDoc(t, d, s) for t, docs in run.items() for d, s in docs.items()]
    more = [Judged @ 10, ERR @ 20, RBP(p=0.9, rel=1), RR @ 3]
    result = provider.calc(more, qrels, rows)
    assert set(result.aggregated) == set(more) and len(result.per_query) == len(more) * len(qrels)
    assert ir_measures.providers.registry["linker"] is provider
    assert all(provider.supports(m) for m in [*MEASURES, *more])
    for unsupported in (nDCG(dcg="exp-log2") @ 5, RBP, SetF(beta=2.0), ir_measures.Accuracy):
        assert not provider.supports(unsupported)
    nothing = {"unknown": {"a": 1.0}}
    theirs = ir_measures.pytrec_eval.calc_aggregate([AP, NumQ], qrels, nothing)
    assert provider.calc_aggregate([AP, NumQ], qrels, nothing) == theirs
