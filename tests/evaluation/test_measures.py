"""The worked example of trec_eval's rules, printing, averaging, names, and the shape of the result."""

import math
from pathlib import Path

import pytest

from linker.base.errors import InputError
from linker.evaluation import evaluate
from linker.evaluation.names import parse
from linker.evaluation.order import Compat
from tests.golden.trec_eval import make

# f1 right at rank 1 despite a wrong rank column, f2 right at 3, f3's e3 tied with e9, f4 wrong, f5 missing.
QRELS = "".join(f"f{i} 0 e{i} 1\n" for i in range(1, 6))
RUN = """\
f1 Q0 e1 9 3 me
f1 Q0 e7 1 2 me
f2 Q0 e8 1 3 me
f2 Q0 e9 2 2 me
f2 Q0 e2 3 1 me
f3 Q0 e3 1 5 me
f3 Q0 e9 2 5 me
f4 Q0 e1 1 1 last
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "run").write_text(RUN)
    return tmp_path / "qrels", tmp_path / "run"


def test_worked_example_without_c(files: tuple[Path, Path]) -> None:
    e = evaluate(*files, ["num_q", "recip_rank", "success.1,5"], complete=False)
    assert e["num_q"] == 4
    assert e["recip_rank"] == pytest.approx((1 + 1 / 3 + 1 / 2 + 0) / 4)
    assert (e["success_1"], e["success_5"]) == (0.25, 0.75)


def test_worked_example_with_c_by_default(files: tuple[Path, Path]) -> None:
    e = evaluate(*files, ["num_q", "MRR", "success@1,5", "num_rel", "num_ret"])
    assert e["num_q"] == 5
    assert e["MRR"] == e["recip_rank"] == pytest.approx(0.36667, abs=1e-5)
    assert (e["success_1"], e["success_5"]) == (0.2, 0.6)
    assert (e["num_rel"], e["num_ret"]) == (5, 8)
    assert (e.num_topics, e.num_answered) == (5, 4)
    assert "4 of 5 judged topics answered" in e.coverage()


def test_printed_form_is_trec_evals(files: tuple[Path, Path]) -> None:
    e = evaluate(*files, ["recip_rank", "num_q", "runid", "num_ret", "gm_map"], complete=False)
    expected_map = math.exp((math.log(1) + math.log(1 / 3) + math.log(1 / 2) + math.log(0.00001)) / 4)
    assert e.text(per_topic=True) == (
        "num_ret               \tf1\t2\nrecip_rank            \tf1\t1.0000\n"
        "num_ret               \tf2\t3\nrecip_rank            \tf2\t0.3333\n"
        "num_ret               \tf3\t2\nrecip_rank            \tf3\t0.5000\n"
        "num_ret               \tf4\t1\nrecip_rank            \tf4\t0.0000\n"
        "runid                 \tall\tlast\nnum_q                 \tall\t4\nnum_ret               \tall\t8\n"
        f"gm_map                \tall\t{expected_map:6.4f}\nrecip_rank            \tall\t0.4583\n"
    )
    assert e.text(per_topic=True, summary=False).count("\n") == 8
    assert "all" not in e.text(summary=False)


def test_c_fills_gm_map_with_its_floor() -> None:
    e = evaluate({"a": {"x": 1}, "b": {"x": 1}}, {"a": {"x": 1.0}}, ["gm_map"])
    assert e["gm_map"] == pytest.approx(math.sqrt(0.00001))


def test_topics_without_relevant_documents_count_and_score_zero() -> None:
    e = evaluate(
        {"a": {"x": 1}, "b": {"x": 0}}, {"a": {"x": 1.0}, "b": {"x": 1.0}}, ["map", "num_q"], complete=False
    )
    assert (e["map"], e["num_q"]) == (0.5, 2)


def test_unjudged_and_rank_cutoffs_of_our_own() -> None:
    qrels = {"q": {"a": 1, "b": 0, "neg": -1}}
    e = evaluate(qrels, {"q": {"u": 4.0, "neg": 3.0, "a": 2.0, "b": 1.0}}, ["unjudged@1,3,5", "MRR@2,3"])
    assert [e[f"unj_{k}"] for k in (1, 3, 5)] == [1, 2 / 3, 2 / 5]
    assert (e["recip_rank_cut_2"], e["recip_rank_cut_3"]) == (0, 1 / 3)


def test_versions_differ_in_float32_ties_and_in_recall_points() -> None:
    near = {"q": {"a": 1 + 2**-30, "b": 1.0}}
    assert evaluate({"q": {"a": 1}}, near, ["recip_rank"])["recip_rank"] == 0.5  # tied: b before a
    assert evaluate({"q": {"a": 1}}, near, ["recip_rank"], compat="trec_eval-10")["recip_rank"] == 1
    seven = {"q": {f"d{i}": 1 for i in range(7)}}
    run = {"q": {"d0": 5.0, "x": 4.0, "d1": 3.0}}
    name = "iprec_at_recall_0.20"  # 1.4 documents: two in version 9, one in version 10
    assert evaluate(seven, run, [name])[name] == 2 / 3
    assert evaluate(seven, run, [name], compat="trec_eval-10")[name] == 1


@pytest.mark.parametrize(
    ("spelling", "names"),
    [
        ("P.5,10", ["P_5", "P_10"]),
        ("P@10,5", ["P_5", "P_10"]),
        ("p_5", ["P_5"]),
        ("nDCG@10", ["ndcg_cut_10"]),
        ("ndcg_cut.10", ["ndcg_cut_10"]),
        ("ndcg_cut_10", ["ndcg_cut_10"]),
        ("nDCG", ["ndcg"]),
        ("MAP", ["map"]),
        ("MAP@5", ["map_cut_5"]),
        ("map_cut.5,10", ["map_cut_5", "map_cut_10"]),
        ("mrr", ["recip_rank"]),
        ("MRR@10", ["recip_rank_cut_10"]),
        ("S@1", ["success_1"]),
        ("success", ["success_1", "success_5", "success_10"]),
        ("R@100", ["recall_100"]),
        ("Rprec", ["Rprec"]),
        ("iprec_at_recall..10,.2", ["iprec_at_recall_0.10", "iprec_at_recall_0.20"]),
        ("iprec_at_recall_0.10", ["iprec_at_recall_0.10"]),
        ("11pt_avg", ["11pt_avg"]),
        ("set_F", ["set_F"]),
        ("AUC-ROC", ["auc"]),
        ("unj", ["unj_5", "unj_10", "unj_20"]),
    ],
)
def test_both_spellings(spelling: str, names: list[str]) -> None:
    assert [str(m) for m in parse([spelling])] == names


@pytest.mark.parametrize(
    "bad", ["nope", "P.0", "P.-1", "P.1.5", "Rprec.3", "iprec_at_recall.2", "", "P.", "P@x", "P.5,"]
)
def test_unknown_names_are_refused(bad: str) -> None:
    with pytest.raises(InputError):
        parse([bad])


def test_result_is_a_mapping_with_topics_html_and_json(files: tuple[Path, Path]) -> None:
    e = evaluate(*files, "map success.1")
    assert dict(e) == {"map": e["MAP"], "success_1": e["S@1"]} and len(e) == 2
    assert e.topic("f2") == {"map": pytest.approx(1 / 3), "success_1": 0}
    assert e._repr_html_().startswith("<table>") and "<td>map</td>" in e._repr_html_()
    data = e.to_dict(per_topic=True)
    assert data["topics"] == 5 and data["answered"] == 4 and data["per_topic"]["f5"]["answered"] is False
    with pytest.raises(KeyError):
        e.topic("f9")


@pytest.mark.parametrize("option", [{"level": 0}, {"most": 0}, {"compat": "trec_eval-8"}])
def test_impossible_options_are_refused(files: tuple[Path, Path], option: dict[str, int]) -> None:
    with pytest.raises(InputError):
        evaluate(*files, "map", **option)  # type: ignore[arg-type] # wrong on purpose


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
