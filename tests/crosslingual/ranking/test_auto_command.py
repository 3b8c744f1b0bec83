"""`linker link --method auto` as users run it: from files to a run, its metadata, its reasons and the tables."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linker.cli.commands import linking as commands
from linker.crosslingual.ranking import folds
from tests.crosslingual.synthetic import Twin, twin, write_pages
from tests.helpers import linker

KNOWN = 60
COPY = "s89"  # a page of words on no other page, so it has no counterpart
SURE = 0.5


@pytest.fixture(scope="module")
def corpus() -> Twin:
    return twin(pages=90)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, corpus: Twin) -> Path:
    """Pages, a dictionary, and the gold links in two parts; `auto` has linked them."""
    folder = tmp_path_factory.mktemp("auto")
    write_pages(folder / "ours.jsonl", corpus.source, other={COPY: "quite other words than anywhere else"})
    write_pages(folder / "theirs.jsonl", corpus.target)
    gold = [f"{s} 0 {t} 1\n" for s, t in corpus.gold().items() if s != COPY]
    (folder / "train.txt").write_text("".join(gold[:KNOWN]), encoding="utf-8")
    (folder / "test.txt").write_text("".join(gold[KNOWN:]), encoding="utf-8")
    words = "".join(f"{a}\t{b}\n" for a, b in corpus.dictionary)
    (folder / "words.tsv").write_text(words, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folds, "MOST", 1)
        link(
            folder, "--dictionary", folder / "words.tsv", "--train", folder / "train.txt", "--explain",
            "--min-probability", str(SURE), "--run-name", "ours", "--out", folder / "auto.run",
        )  # fmt: skip
    return folder


def link(folder: Path, *arguments: str | Path, method: str = "auto", check: int = 0) -> str:
    pages = (folder / "ours.jsonl", folder / "theirs.jsonl")
    return linker("link", *pages, "--method", method, *arguments, check=check).stderr


def ranked(folder: Path) -> dict[str, list[list[str]]]:
    """The run's lines by source page, in their order."""
    lines: dict[str, list[list[str]]] = {}
    for line in (folder / "auto.run").read_text(encoding="utf-8").splitlines():
        lines.setdefault(line.split(" ")[0], []).append(line.split(" "))
    return lines


def about(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "auto.run.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def falls(numbers: Sequence[float]) -> bool:
    return all(a > b for a, b in itertools.pairwise(numbers))


def test_the_run_has_buccs_columns_and_probabilities(folder: Path) -> None:
    for lines in ranked(folder).values():
        assert len(lines) <= 5
        assert [len(line) for line in lines] == [6] * len(lines)
        assert [line[3] for line in lines] == [str(rank) for rank in range(1, len(lines) + 1)]
        assert {line[5] for line in lines} == {"ours"}
        scores = [float(line[4]) for line in lines]
        assert falls(scores)
        assert SURE <= scores[0] <= 1


def test_every_page_is_linked_unlinked_or_known(folder: Path, corpus: Twin) -> None:
    linked, unlinked = set(ranked(folder)), set(about(folder)["no_link"])
    assert not linked & unlinked
    assert linked | unlinked == set(corpus.source.ids[KNOWN:])
    assert COPY in unlinked
    known = {corpus.gold()[s] for s in corpus.source.ids[:KNOWN]}
    assert not known & {line[2] for lines in ranked(folder).values() for line in lines}


def test_the_metadata_says_how_it_was_made(folder: Path) -> None:
    found = about(folder)
    assert (found["method"], found["links"], found["min_probability"]) == ("auto", KNOWN, SURE)
    assert found["dictionaries"] == [{"file": "words.tsv", "format": "tsv", "pairs": 600}]
    assert found["transductive"] is True
    assert "competition for targets" in found["uses_unlinked_pages"]


def test_reasons_are_given_for_each_page_that_was_asked_about(folder: Path, corpus: Twin) -> None:
    lines = (folder / "auto.run.explain.jsonl").read_text(encoding="utf-8").splitlines()
    reasons = {r["id"]: r for r in map(json.loads, lines)}
    assert set(reasons) == set(corpus.source.ids[KNOWN:])
    first = {s: lines[0] for s, lines in ranked(folder).items()}
    assert {s for s, r in reasons.items() if r["link"] is None} == set(reasons) - set(first)
    words = set(corpus.dictionary)
    for s, line in first.items():
        assert reasons[s]["link"] == line[2]
        assert reasons[s]["probability"] == pytest.approx(float(line[4]), abs=1e-4)
        assert reasons[s]["matches"]
        assert all((a, b) in words for a, b, kind, _ in reasons[s]["matches"] if kind == "dictionary")


def test_the_tables_read_the_run(folder: Path, corpus: Twin) -> None:
    gold, first = corpus.gold(), {s: lines[0][2] for s, lines in ranked(folder).items()}
    asked = [s for s in corpus.source.ids[KNOWN:] if s != COPY]
    right = float(np.mean([first.get(s) == gold[s] for s in asked]))
    assert right > 0.85
    files = (folder / "test.txt", folder / "auto.run")
    (row,) = json.loads(linker("bucc", "evaluate", files[0], "--run", files[1], "--json").stdout)
    assert row["complete"]["success_1"] == pytest.approx(right, abs=1e-4)
    text = linker("evaluate", "-c", "-m", "success.1", *files).stdout
    assert float(text.split()[-1]) == pytest.approx(right, abs=1e-4)


@pytest.mark.parametrize("known", [10, 30])
def test_progress_ends_at_its_total(folder: Path, known: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held-out pages are featurised once per division of the links, and not at all if there are too few links."""
    monkeypatch.setattr(folds, "MOST", 2)  # each division takes seconds
    lines = (folder / "train.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "few.txt").write_text("".join(lines[:known]), encoding="utf-8")
    told: list[tuple[str, int, int | None]] = []
    pages = (folder / "ours.jsonl", folder / "theirs.jsonl")
    commands.link(*pages, "auto", train=folder / "few.txt", progress=lambda *step: told.append(step))
    assert [step[1:] for step in told if step[0] == "learning and linking"][-1] == (
        {10: 80, 30: 60 + 2 * 30}[known],
    ) * 2


@pytest.mark.parametrize(
    "flags",
    [
        ("--explain",), ("--min-probability", "0.9"), ("--self-train",), ("--no-layout",),
        ("--topics", "gibbs"),
    ],
)  # fmt: skip
def test_other_methods_refuse_what_only_learned_ones_do(folder: Path, flags: tuple[str, ...]) -> None:
    told = link(folder, *flags, "--out", folder / "x.run", method="hapax", check=1)
    assert f"{flags[0]} is for the method" in told
    assert not (folder / "x.run").exists()


def test_reasons_need_a_file_to_lie_beside(folder: Path) -> None:
    told = link(folder, "--dictionary", folder / "words.tsv", "--explain", "--out", "/dev/null", check=1)
    assert "--explain writes a file next to the run" in told and "/dev/null" in told
