"""docs/walk.md shows its commands' output, docs/json.md their output for programs; every example runs as written."""

import json
import re
import runpy
from pathlib import Path

import pytest

from benchmarks.report import walk
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
JSON = dict(re.findall(r"^\| `([a-z -]+)` \| (.*?) \|", PAGE, re.MULTILINE))


def keys(text: str) -> tuple[set[str], set[str]]:
    """Return the keys that a row of docs/json.md names: the mandatory keys, and those in brackets."""
    optional = re.findall(r"\[(.*?)\]", text)
    return set(re.findall(r"`(\w+)`", re.sub(r"\[.*?\]", "", text))), set(
        re.findall(r"`(\w+)`", " ".join(optional))
    )


def test_the_page_shows_what_the_commands_print() -> None:
    page = walk.PAGE.read_text(encoding="utf-8")
    assert walk.render(page) == page, "run python -m benchmarks.report.walk, and read what changed"


def test_output_for_programs_has_the_documented_keys() -> None:
    seen = set()

    def run(command: str) -> str:
        name = re.match(r"linker ((?:index |review )?[a-z]+)", command)
        if " --out bm25.run" in command or " --out other.run" in command:  # a run, or JSON
            walk.printed(command)
            command = command.partition(" --out")[0]
        said = walk.printed(f"{command} --json" if name else command)
        lines = [line for line in said.splitlines() if line.startswith("{")]
        if name and lines:
            seen.add(name[1])
            always, optional = keys(JSON[name[1]])
            for line in lines:
                assert always <= json.loads(line).keys() <= always | optional, command
        return said

    walk.render(walk.PAGE.read_text(encoding="utf-8"), run)
    assert len(seen) >= 22, seen


def test_figures_of_one_run_are_replaced() -> None:
    said = f"{Path('/tmp/x').resolve()}/a at 2024-01-02T03:04:05.6+00:00, 17 bytes  \nbytes        12\n"
    assert walk.normalised(said, Path("/tmp/x")) == "a at …, … bytes\nbytes        …\n"


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAYS = {
    "search.py": "2 documents are left",
    "own_encoder.py": "dense   p1",
    "find_posts.py": "2 of 2 judged posts are relevant",
    "evaluate_run.py": "95 % interval of MRR",
    "compare_runs.py": "recip_rank",
    "link_pages.py": "f1 → e2",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    printed = capfd.readouterr()
    assert SAYS[example.name] in printed.out
    assert not printed.err
    assert not list(tmp_path.iterdir())
    assert f"[{example.name}]" in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
