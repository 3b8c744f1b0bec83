"""Run a page's commands as a reader does, and compare their output: `python -m tests.site.transcripts PAGE`.

A block in the language `console` holds commands, each after "$ ", and their output. A block with a title, such as
```toml title="star.toml", is a file to write. In expected output, "…" stands for any characters in a line, and a line
with only "…" for any lines; an answer after a question from `linker find` is typed by the reader.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROMPT = re.compile(r"(relevant\? \[[^]]*\]) ")
ANSWER = re.compile(PROMPT.pattern + r"(\w)$", re.MULTILINE)
END = "\n--end of command {} with status "


@dataclass(frozen=True)
class Step:
    """A command of a page, its expected output, and its actual output."""

    command: str
    expected: str
    status: int
    printed: str

    @property
    def right(self) -> bool:
        """Whether the command succeeded and printed the expected output."""
        return self.status == 0 and matches(ANSWER.sub(r"\1", self.expected), self._as_typed)

    @property
    def _as_typed(self) -> str:
        return PROMPT.sub(r"\1\n", self.printed)  # a terminal shows the newline that the reader types


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block, its continued lines joined, with the output below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        last = next(i for i, line in enumerate(lines) if not line.endswith("\\\n"))
        yield "".join(lines[: last + 1]).rstrip("\n"), "".join(lines[last + 1 :])


def matches(expected: str, printed: str) -> bool:
    """Compare, with "…" for any characters in a line and a line with only "…" for any lines."""
    lines = ("(?:.*\n)*" if line == "…" else _line(line) + "\n" for line in expected.splitlines())
    text = printed if not printed or printed.endswith("\n") else printed + "\n"
    return re.fullmatch("".join(lines), "\n".join(line.rstrip() for line in text.split("\n"))) is not None


def _line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split("…"))


def run(page: str, folder: Path) -> list[Step]:
    """Write a page's files and run its commands in one shell, in an empty folder."""
    steps: list[tuple[str, str]] = []
    script = ["exec 2>&1"]
    for language, title, content in BLOCK.findall(page):
        if title:
            (folder / title).write_text(content, encoding="utf-8")
        if language != "console":
            continue
        for command, expected in commands(content):
            answers = "".join(f"{answer}\n" for _, answer in ANSWER.findall(expected))
            typed = f" <<'ANSWERS'\n{answers}ANSWERS" if answers else ""
            script.append(
                f"{command}{typed}\nprintf '{END.format(len(steps))}%s\\n' $?".replace("\n--", "\\n--")
            )
            steps.append((command, expected))
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "COLUMNS": "100",
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=folder, env=environment, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return list(_steps(steps, done.stdout))


def _steps(steps: list[tuple[str, str]], output: str) -> Iterator[Step]:
    for number, (command, expected) in enumerate(steps):
        printed, _, output = output.partition(END.format(number))
        status, _, output = output.partition("\n")
        yield Step(command, expected, int(status or -1), printed)


def main() -> None:
    """Print each step of a page whose output differs from the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    page = parser.parse_args().page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        wrong = [step for step in run(page, Path(folder)) if not step.right]
    for step in wrong:
        print(f"$ {step.command}   [{step.status}]\n{step.printed}\n--- the page says\n{step.expected}\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
