"""Run the commands of docs/walk.md and write what they print below them: `python -m benchmarks.report.walk`.

Each ```console block holds lines `$ command`; everything else in it is output. All blocks run in one folder that
starts with the files of docs/walk. A line `[…]` marks omitted output: with `… N` after a command, as a comment, only
its first N lines are kept. Times, sizes and other figures that differ between machines are replaced by `…`.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[2]
PAGE, DATA = ROOT / "docs" / "walk.md", ROOT / "docs" / "walk"
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (.*?)(?:  # … (\d+))?$")
SHELL = re.compile(r"[|<>;&*]")
FIGURES = (  # text that differs between runs, and its replacement
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)?"), "…"),
    (re.compile(r"(?<=^bytes        )\d+", re.MULTILINE), "…"),
    (re.compile(r"\d+(?= bytes)"), "…"),
    (re.compile(r"(?<=calibration-)[0-9a-f]{16}"), "…"),
    (re.compile(r"^linker \S+, Python .*", re.MULTILINE), "linker …, Python …, Linux …"),
)
Run = Callable[[str], str]


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Work in a new folder with the files of the walk."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as temporary, mock.patch.dict(os.environ, {"COLUMNS": "100"}):
        shutil.copytree(DATA, temporary, dirs_exist_ok=True)
        os.chdir(temporary)
        try:
            yield Path(temporary)
        finally:
            os.chdir(before)


def printed(command: str) -> str:
    """Return a command's output on stdout and stderr; `linker` runs in this process, which is faster."""
    if not command.startswith("linker ") or SHELL.search(command):
        environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-c", command], env=environment, text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.stdout
    from linker.cli import main

    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with mock.patch.multiple(
        sys, argv=shlex.split(command), stdin=io.StringIO(), stdout=stream, stderr=stream
    ):
        with contextlib.suppress(SystemExit):
            main()
        return stream.buffer.getvalue().decode()


def normalised(text: str, root: Path) -> str:
    """Return output with `…` in place of text that differs between runs."""
    text = text.replace(f"{root.resolve()}/", "").replace(f"{root}/", "")
    for pattern, replacement in FIGURES:
        text = pattern.sub(replacement, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def render(page: str, run: Run = printed) -> str:
    """Return the page with the current output of its commands."""
    with folder() as place:
        return BLOCK.sub(lambda block: _block(block[0], place, run), page)


def _block(block: str, root: Path, run: Run) -> str:
    parts = []
    for line in block.splitlines():
        if match := COMMAND.match(line):
            command, most = match.groups()
            lines = normalised(run(command), root).splitlines(keepends=True)
            output = lines if most is None else [*lines[: int(most)], *["[…]\n"][: len(lines) > int(most)]]
            parts.append(f"{line}\n{''.join(output)}")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
