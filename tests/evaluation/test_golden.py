"""Whole printed outputs, byte for byte; provenance in tests/golden/trec_eval/make.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from linker.evaluation import evaluate
from linker.evaluation.order import Compat
from tests.golden.trec_eval import make

FOLDER = Path(make.__file__).parent
MEASURES = [
    "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref", "recip_rank",
    "iprec_at_recall", "P.1,2,3,5,10", "recall.1,2,3,5,10", "11pt_avg", "ndcg", "ndcg_cut.1,2,3,5,10",
    "success.1,2,3,5,10", "set_P", "set_recall", "set_F",
]  # fmt: skip


@pytest.mark.parametrize("compat", ["trec_eval-9", "trec_eval-10"])
@pytest.mark.parametrize("complete", [True, False])
def test_printed_output(compat: Compat, complete: bool) -> None:
    result = evaluate(FOLDER / "qrels.txt", FOLDER / "run.txt", MEASURES, complete=complete, compat=compat)
    name = f"{'qc' if complete else 'q'}-{compat.rpartition('-')[2]}.txt"
    assert result.text(per_topic=True).encode() == (FOLDER / name).read_bytes()


def test_the_files_are_what_the_script_writes() -> None:
    qrels, run = make.make_case()
    for version in ("9", "10"):
        values = make.by_topic(qrels, run, version)
        assert make.output(qrels, values, complete=True) == (FOLDER / f"qc-{version}.txt").read_text(
            encoding="utf-8"
        )
    assert (FOLDER / "qc-9.txt").read_text() != (FOLDER / "qc-10.txt").read_text()
