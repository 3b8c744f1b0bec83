"""The layout of the papers' tables, and the published figures."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from linker.base.errors import InputError
from linker.papers.all_pairs.result import RANKS
from linker.papers.reproduce.cells import Outcome, Study, System, reproduce
from linker.papers.reproduce.frame import as_latex, as_markdown, figures_of, published, row, table


def test_published_means_are_those_of_eight_ranks() -> None:
    """The paper prints seven precisions for its star: the eighth follows from the mean, and is the lowest."""
    ranks = [f"P@{rank}" for rank in RANKS[:-1]]
    shown = figures_of("ast", "any", ["mRP", *ranks])["AST"]
    precisions = [shown[rank] for rank in ranks]
    assert 0.4 < 8 * shown["mRP"] - sum(precisions) < precisions[-1]


@pytest.mark.parametrize("paper", ["ast", "semeval", "bucc", "cbg"])
def test_every_published_cell_says_where_it_stands(paper: str) -> None:
    found = published(paper)
    assert found["paper"]
    for cell in found["cells"]:
        assert {*cell} <= {"table", "row", "system", "studies", "figures"}
        assert cell["table"] and cell["row"] and cell["system"] and cell["figures"]


def test_a_system_has_its_published_line_and_ours() -> None:
    rows = [
        row("CNN", {"mAP": 0.4981, "pairs": 12000}, {"mAP": [0.25, 0.35], "pairs": None}, "other data"),
        row("AST", {}, {"mAP": 0.5}),
        row("HFL", {"mAP": 0.8}, {}),
    ]
    lines = as_markdown({"tables": [table("Table 2", ["mAP", "pairs"], rows, "fewer links")]}).splitlines()
    assert lines[0] == "**Table 2**"
    assert [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[4:8]] == [
        ["CNN", "published", "0.498", "12,000"],
        ["here (2 seeds)", "0.300 ± .071", "", "other data"],
        ["AST", "here", "0.500"],
        ["HFL", "published", "0.800"],
    ]
    assert lines[-1] == "Why they differ: fewer links."
    assert "% Why they differ: fewer links." in as_latex(
        {"tables": [table("", ["mAP"], rows, "fewer links")]}
    )


def test_an_interval_over_seeds_is_students() -> None:
    values = [0.2, 0.3, 0.7]
    found = row("AST", {}, {"mAP": values})["here"]["mAP"]
    low, high = t.interval(0.95, 2, np.mean(values), np.std(values, ddof=1) / np.sqrt(3))
    assert found["interval"] == pytest.approx([low, high], abs=1e-4)
    assert row("AST", {}, {"mAP": [0.5]})["label"] == "here (1 seed)"


def test_williams_compares_systems_on_one_gold(tmp_path: Path) -> None:
    gold, a, b = [1, 2, 3, 4, 5, 6, 7, 8], [1, 3, 2, 4, 6, 5, 8, 7], [2, 1, 5, 3, 4, 8, 6, 7]
    systems = [
        System("worse", lambda seed: Outcome({"Pearson": 0.8333}, b)),
        System("better", lambda seed: Outcome({"Pearson": 0.9286}, a), rival="worse"),
    ]
    study = Study("pairs", [("Title", ["Pearson"])], systems, gold=gold)
    (shown,) = reproduce("cbg", [study], tmp_path, 3, print)["tables"]
    assert shown["tests"] == [["better", "worse", [0.1714]]]
    assert "better ahead of worse: p = 0.1714" in as_markdown({"tables": [shown]})


def test_systems_are_compared_over_the_seeds_that_both_have(tmp_path: Path) -> None:
    figures = {"AST": [0.4, 0.5, 0.3], "CNN": [0.3, 0.45, 0.1], "mean": [0.5]}

    def figure(name: str, seed: int) -> Outcome:
        if seed >= len(figures[name]):
            raise InputError(f"seed {seed} was not computed")
        return Outcome({"mAP": figures[name][seed]})

    systems = [
        System(name, partial(figure, name), chance=True, rival="" if name == "AST" else "AST")
        for name in figures
    ]
    (shown,) = reproduce("ast", [Study("posts", [("Title", ["mAP"])], systems)], tmp_path, 3, print)["tables"]
    ((first, second, difference),) = shown["differences"]
    leads = np.array(figures["CNN"]) - figures["AST"]
    low, high = t.interval(0.95, 2, leads.mean(), leads.std(ddof=1) / np.sqrt(3))
    assert (first, second, difference["mean"]) == ("CNN", "AST", pytest.approx(leads.mean(), abs=1e-4))
    assert difference["interval"] == pytest.approx([low, high], abs=1e-4)
    text = as_markdown({"tables": [shown]})
    assert "mAP minus that of AST (95 %, paired by seed): CNN -0.117 (-0.306 to +0.073)." in text
