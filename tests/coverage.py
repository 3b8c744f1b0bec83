"""Run all tests (or the named ones) and print how much of each room they execute (`make coverage`)."""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.house import ROOT, room

LEAST = 0.90  # minimum share of lines per room
# Minimum share of branches where an untested line could lose data, let somebody in or end a review too early
CAREFUL = dict.fromkeys(
    ("indexes/store", "linker/review/ledger", "linker/server/guard", "linker/review/stopping"), 0.95
)
COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def shares(files: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return the executed shares of lines and branches by room, and by the paths of CAREFUL.

    `files`: by path, the "summary" of coverage's JSON report.
    """
    sums: dict[str, list[int]] = defaultdict(lambda: [0] * len(COUNTS))
    for path, file in files.items():
        if not path.startswith(("indexes/", "linker/")):
            continue  # spawned processes also count the tests' own files
        names = {room(ROOT / path) or "linker", *(c for c in CAREFUL if path.startswith((f"{c}/", f"{c}.")))}
        for name in names:
            sums[name] = [s + file["summary"][c] for s, c in zip(sums[name], COUNTS, strict=True)]
    return {
        name: (lines / max(1, of_lines), branches / max(1, of_branches))
        for name, (of_lines, lines, of_branches, branches) in sorted(sums.items())
    }


def table(found: Mapping[str, tuple[float, float]]) -> Iterable[str]:
    """Yield a line per room; shares that are too low are marked."""
    yield f"{'':28}  lines  branches"
    for name, (lines, branches) in found.items():
        low = lines < LEAST or branches < CAREFUL.get(name, 0)
        yield f"{name:28} {lines:6.1%} {branches:8.1%}{'  too low' if low else ''}"


def main(tests: list[str]) -> int:
    """Return the exit status: 1 if a test failed or a share is too low."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        measured = [
            "--cov=linker", "--cov=indexes", f"--cov-report=json:{report}", "-n", "3", "--dist", "worksteal",
        ]  # fmt: skip
        failed = subprocess.run([sys.executable, "-m", "pytest", *measured, *tests], check=False).returncode
        lines = list(table(shares(json.loads(report.read_text(encoding="utf-8"))["files"])))
    print("\n".join(lines))
    return int(bool(failed) or any("too low" in line for line in lines))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
