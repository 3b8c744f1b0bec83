"""docs/walk.md shows its commands' output, and docs/json.md their output for programs."""

import json
import re
from pathlib import Path

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
