"""The three commands as run by a user."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import linker


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    (tmp_path / "qrels").write_text("é 0 a 1\n2 0 a 2\n3 0 a 1\n")
    (tmp_path / "one").write_text("é Q0 a 1 2 one\n2 Q0 b 1 2 one\n2 Q0 a 1 2 one\n2 Q0 c 3 1 one\n")
    (tmp_path / "two").write_text("é Q0 b 1 2 two\né Q0 a 1 1 two\n2 Q0 a 1 2 two\n")
    return tmp_path / "qrels", tmp_path / "one", tmp_path / "two"


def test_evaluate_prints_trec_evals_form_and_both_counts(files: tuple[Path, Path, Path]) -> None:
    result = linker("evaluate", *files[:2], "-m", "num_q", "-m", "recip_rank", "-q")
    assert result.stdout == (
        "recip_rank            \t2\t0.5000\nrecip_rank            \té\t1.0000\n"
        "num_q                 \tall\t3\nrecip_rank            \tall\t0.5000\n"
    )
    assert "2 of 3 judged topics answered" in result.stderr


def test_the_default_is_the_official_set_and_c(files: tuple[Path, Path, Path]) -> None:
    lines = [line.split() for line in linker("evaluate", *files[:2]).stdout.splitlines()]
    assert lines[:3] == [["runid", "all", "one"], ["num_q", "all", "3"], ["num_ret", "all", "4"]]
    assert [name for name, _, _ in lines][5:11] == [
        "map", "gm_map", "Rprec", "bpref", "recip_rank", "iprec_at_recall_0.00",
    ]  # fmt: skip
    assert (
        len(lines) == 30
        and linker("evaluate", *files[:2], "-c").stdout.splitlines()[1] == "num_q                 \tall\t3"
    )
    assert "num_q                 \tall\t2\n" in linker("evaluate", *files[:2], "--answered-only").stdout


def test_switches(files: tuple[Path, Path, Path]) -> None:
    def value(*options: str) -> float:
        data = json.loads(linker("evaluate", *files[:2], "-m", "num_rel_ret", *options, "--json").stdout)
        return float(data["measures"]["num_rel_ret"])

    assert (value(), value("-l", "2"), value("-M", "1"), value("-J")) == (2, 1, 1, 2)
    assert linker("evaluate", *files[:2], "-m", "map", "-n").stdout == ""
    text = linker("evaluate", *files[:2], "-m", "map", "--ties", "--ci", "--samples", "100").stdout
    assert [line.split()[0] for line in text.splitlines()] == [
        "map", "map_low", "map_high", "map_ci_low", "map_ci_high", "tied_documents", "tied_topics"
    ]  # fmt: skip
    near = linker("evaluate", *files[:2], "--compat", "trec_eval-10", "-m", "map", "--json")
    assert json.loads(near.stdout)["measures"]["map"] == 0.5


def test_a_repeated_judgement_is_dropped_and_a_contradiction_refused(files: tuple[Path, Path, Path]) -> None:
    qrels, run, other = files
    once = linker("evaluate", qrels, run).stdout
    first = qrels.read_text().splitlines()[0]
    with qrels.open("a") as file:
        file.write(f"{first}\n")
    for command in (("evaluate", qrels, run), ("compare", qrels, run, other)):
        warning = linker(*command).stderr
        assert "warning: " in warning and f"{qrels}:1" in warning
    assert linker("evaluate", qrels, run).stdout == once
    *rest, relevance = first.split()
    with qrels.open("a") as file:
        file.write(" ".join([*rest, str(int(relevance) + 1)]) + "\n")
    assert "delete the line that is wrong" in linker("evaluate", qrels, run, check=1).stderr


def test_a_plot_that_cannot_be_written_is_refused_before_the_comparison(
    files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    for name, message in (("p.pdf", "must end in .png or .svg"), ("nowhere/p.svg", "there is no folder")):
        refused = linker("compare", tmp_path / "no.qrels", *files[1:], "--plot", tmp_path / name, check=None)
        assert refused.returncode and message in refused.stderr


def test_one_topic_is_not_topics(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("é 0 a 1\n")
    assert "1 topic; baseline one;" in (result := linker("compare", *files)).stderr
    assert (
        "1 of 1 judged topic answered; averaged over all judged topics; 1 topic of the run is not"
        in result.stderr
    )


def test_compare(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    table = linker("compare", *files, "-m", "map", "--samples", "100")
    assert "two" in table.stdout and "baseline one" in table.stderr
    assert "baseline two" in linker("compare", *files, "--baseline", files[2], "--samples", "100").stderr
    assert linker("compare", *files, "--latex", "--samples", "100").stdout.startswith("\\begin{tabular}")
    assert linker("compare", *files, "--markdown", "--samples", "100").stdout.startswith("| run")
    data = json.loads(linker("compare", *files, "--json", "--test", "t", "--plot", tmp_path / "p.svg").stdout)
    assert data["test"] == "t" and (tmp_path / "p.svg").exists()
    assert "choose one" in linker("compare", *files, "--json", "--latex", check=2).stderr


def test_evaluate_pairs(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.eye(3))
    np.save(tmp_path / "t.npy", np.eye(3)[[0, 1, 2, 0]])
    (tmp_path / "links").write_text("0 0\n1 1\n2 2\n0 3\n")
    args = ("evaluate-pairs", tmp_path / "a.npy", tmp_path / "t.npy", tmp_path / "links")
    data = json.loads(linker(*args, "-t", "0.5", "-u", "2", "--json").stdout)
    assert data["map_micro"] == data["auc_macro"] == 1 and data["precision_at"]["50"] is None
    assert data["thresholds"][0]["true_positives"] == 4 and data["until"][0]["median_tweets"] == 2
    assert "map_micro                  1.0000\n" in linker(*args).stdout


def test_several_runs_give_a_table(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    (tmp_path / "three.json").write_text('{"é": {"a": 1.5}}', encoding="utf-8")
    result = linker(
        "evaluate", *files, tmp_path / "three.json", "-m", "nDCG@10", "-m", "num_q", "--samples", "200"
    )
    assert result.stdout == (
        "run    num_q  nDCG@10\none    3       0.5436\ntwo    3       0.5436\nthree  3       0.3333\n"
    )
    assert "against one (Fisher randomisation, two-sided, 200 samples" in result.stderr
    assert "three: 1 of 3 judged topics answered" in result.stderr
    data = json.loads(linker("evaluate", *files, "--json", "-q").stdout)
    assert [run["label"] for run in data["runs"]] == ["one", "two"] and data["baseline"] == "one"
    assert "p_holm" not in data["runs"][0] and set(data["runs"][1]["p_holm"]) == {
        "map", "recip_rank", "recall_100", "ndcg_cut_10"
    }  # fmt: skip
    assert data["runs"][1]["per_topic"]["é"]["answered"]
    for wrong in (["--ties"], ["--ci"], ["-q"], ["--latex", "--json"]):
        linker("evaluate", *files, *wrong, check=2)
    assert "given twice" in linker("evaluate", files[0], files[1], files[1], check=1).stderr


def test_the_latex_table_has_bold_bests_and_marks(tmp_path: Path) -> None:
    qrels = "".join(f"q{t} 0 a 1\n" for t in range(40))
    base = "".join(f"q{t} Q0 {d} 1 {s} b_1\n" for t in range(40) for d, s in (("x", 2), ("a", 1)))
    better = "".join(f"q{t} Q0 a 1 1 better\n" for t in range(40))
    slightly = "".join(
        f"q{t} Q0 {d} 1 {s} slightly\n" for t in range(40) for d, s in (("x", 2 if t > 5 else 0), ("a", 1))
    )
    for name, text in (("q", qrels), ("b", base), ("c", better), ("d", slightly)):
        (tmp_path / name).write_text(text)
    paths = [tmp_path / n for n in "qbcd"]
    lines = linker("evaluate", *paths, "-m", "MRR@10", "-m", "num_ret", "--latex").stdout.splitlines()
    assert lines == [
        "\\begin{tabular}{lrr}", "\\toprule", "run & num\\_ret & MRR@10 \\\\", "\\midrule",
        "b\\_1 & 80 & 0.5000 \\\\",
        "better & 40 & \\textbf{1.0000}$^{\\ddagger}$ \\\\",
        "slightly & 80 & 0.5750$^{\\dagger}$ \\\\",
        "\\bottomrule", "\\end{tabular}",
    ]  # fmt: skip
    assert "**1.0000‡**" in linker("evaluate", *paths, "-m", "MRR@10", "--markdown").stdout


def test_only_one_file_comes_from_stdin(files: tuple[Path, Path, Path]) -> None:
    linker("evaluate", "-", "-", check=2)
    linker("evaluate", files[0], "-", "-", check=2)
