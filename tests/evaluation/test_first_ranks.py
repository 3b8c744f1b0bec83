"""MRR and Success@k from first ranks equal trec_eval's on a run without ties."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from indexes.dtypes import BoolArray
from linker.evaluation import evaluate
from linker.evaluation.first_ranks import first_ranks, reciprocal_ranks, successes


def test_worked_numbers() -> None:
    ranks = first_ranks(np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]], dtype=bool))
    assert ranks.tolist() == [2, np.inf, 1]
    assert reciprocal_ranks(ranks).tolist() == [0.5, 0, 1]
    assert successes(ranks, 1).tolist() == [0, 0, 1]
    assert successes(ranks, 2).tolist() == [1, 0, 1]


@given(arrays.arrays(bool, st.tuples(st.integers(1, 4), st.integers(1, 9))))
def test_as_the_evaluator_has_it(relevant: BoolArray) -> None:
    qrels = {
        f"q{q}": {f"d{d}": int(flag) for d, flag in enumerate(row)} for q, row in enumerate(relevant.tolist())
    }
    run = {query: {document: -int(document[1:]) for document in judged} for query, judged in qrels.items()}
    found = evaluate(qrels, run, ["MRR", "success.1,5"], complete=True)
    ranks = first_ranks(relevant)
    assert np.isclose(found["MRR"], reciprocal_ranks(ranks).mean())
    for cutoff in (1, 5):
        assert np.isclose(found[f"success_{cutoff}"], successes(ranks, cutoff).mean())
