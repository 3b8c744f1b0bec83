"""The tutorials and notebooks run as written; their files hold every story once in each role, in disjoint splits."""

import csv
import json
import os
import shutil
from pathlib import Path

import pytest

from linker.demo.files import ABOUT, write_files
from linker.demo.training import lee_stories
from linker.evaluation.reading.trec import read_qrels
from tests.site.transcripts import ROOT, commands, matches, run

DOCS = ROOT / "docs"
PAGES = {
    "index.md": "python -m linker.demo.files news",  # what a reader has done before, on another page
    "tutorials/index.md": "true",
    "tutorials/newsroom.md": "true",
    "tutorials/researcher.md": "true",
    "tutorials/engineer.md": "true",
}


@pytest.mark.parametrize("name", PAGES)
def test_page_does_what_it_says(name: str, tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    if "curl" in (DOCS / name).read_text(encoding="utf-8") and not shutil.which("curl"):
        pytest.skip("needs curl")
    before = f"```console\n$ {PAGES[name]} >/dev/null\n```\n"
    steps = run(before + (DOCS / name).read_text(encoding="utf-8"), tmp_path)
    assert len(steps) > 1
    for step in steps:
        assert step.right, "\n".join(
            [f"$ {step.command}  [{step.status}]", step.printed, "--- the page says", step.expected]
        )


def test_every_tutorial_is_tested() -> None:
    assert {f"tutorials/{path.name}" for path in (DOCS / "tutorials").glob("*.md")} <= PAGES.keys()


def test_commands_and_their_outputs_are_told_apart() -> None:
    assert list(commands("$ a \\\n  b\nout\n\nmore\n$ c\n")) == [("a \\\n  b", "out\n\nmore\n"), ("c", "")]


def test_an_ellipsis_stands_for_what_it_should() -> None:
    assert matches("a … c\n", "a b c\n")
    assert matches("a\n…\nd\n", "a\nb\nc\nd\n")
    assert not matches("a … c\n", "a b\nc\n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("", "a\n")


def test_a_command_that_fails_is_wrong(tmp_path: Path) -> None:
    page = "```console\n$ echo one\none\n$ false\n$ echo two\nthree\n```\n"
    assert [(step.right, step.status) for step in run(page, tmp_path)] == [(True, 0), (False, 1), (False, 0)]


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gensim")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    assert all(
        not cell.outputs and cell.execution_count is None
        for cell in notebook.cells
        if cell.cell_type == "code"
    )
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("text/html" in output.get("data", {}) for output in shown)
    assert not [output for output in shown if output.get("name") == "stderr"]
    assert f"[{path.name}]" in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("gensim")
    write_files(tmp_path)
    return tmp_path


def links(path: Path) -> set[tuple[str, str]]:
    with path.open(encoding="utf-8") as file:
        return {(row["query-id"], row["corpus-id"]) for row in csv.DictReader(file, delimiter="\t")}


def test_counts_are_those_of_the_files(tmp_path: Path) -> None:
    pytest.importorskip("gensim")
    for name, count in write_files(tmp_path).items():
        lines = (tmp_path / name).read_text(encoding="utf-8").splitlines()
        assert len(lines) - (not name.endswith(".jsonl")) == count > 0


def test_posts_and_articles_are_the_two_parts_of_the_stories(folder: Path) -> None:
    background, test = lee_stories()
    stories = {s.id: s for s in (*background, *test)}
    with (folder / "posts.csv").open(encoding="utf-8", newline="") as file:
        assert {row["post_id"]: row["text"] for row in csv.DictReader(file)} == {
            f"p-{id_}": story.opening for id_, story in stories.items()
        }
    with (folder / "articles.csv").open(encoding="utf-8", newline="") as file:
        assert {row["id"]: row["text"] for row in csv.DictReader(file)} == {
            f"a-{id_}": stories[id_].rest for id_ in ABOUT
        }
    lines = (folder / "beir" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    assert {(r := json.loads(line))["_id"]: r["text"] for line in lines} == {
        f"a-{id_}": story.rest for id_, story in stories.items()
    }


def test_splits_link_each_post_to_its_article_once(folder: Path) -> None:
    splits = [links(folder / "beir" / "qrels" / f"{name}.tsv") for name in ("train", "dev", "test")]
    together = set.union(*splits)
    assert len(together) == sum(map(len, splits))
    assert all(post[2:] == article[2:] and (post[0], article[0]) == ("p", "a") for post, article in together)
    assert read_qrels(folder / "beir" / "qrels" / "test.tsv")
