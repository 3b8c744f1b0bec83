"""Tests for changed code within two minutes (`make quick`): those in changed files, and those that import them.

`BASE=REF` sets the commit that the working tree is compared with; the default is the last commit or, if nothing is
uncommitted, the one before.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.house import ROOT, files, imports

SECONDS = 110.0  # lint takes the rest of two minutes, if mypy's cache is warm


def changed(base: str) -> set[Path]:
    """Return the files that differ from a commit, and untracked files."""
    names = _git("diff", "--name-only", base) | _git("ls-files", "--others", "--exclude-standard")
    return {ROOT / name for name in names}


def _git(*arguments: str) -> set[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def chosen(paths: Iterable[Path], tests: Mapping[Path, set[str]]) -> list[Path]:
    """Return the tests for changed files, nearest first: they are changed, mirror a changed file, or import one.

    `tests`: the imports of each test file.
    """
    near: dict[Path, int] = {}
    for path in paths:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for test, names in tests.items():
            distance = (
                0 if test == path else 1 if test.stem == f"test_{path.stem}" else 2 if module in names else 3
            )
            near[test] = min(distance, near.get(test, 3))
    return sorted(
        (test for test, distance in near.items() if distance < 3), key=lambda test: (near[test], test)
    )


def main() -> int:
    base = os.environ.get("BASE") or ("HEAD" if _git("status", "--porcelain") else "HEAD~1")
    tests = {
        path: {name for name, _ in imports(path)} for path in files("tests") if path.name.startswith("test_")
    }
    found = [str(path.relative_to(ROOT)) for path in chosen(changed(base), tests)]
    if not found:
        print(f"no test belongs to what changed since {base}: make test runs all")
        return 0
    print(f"{len(found)} files of tests for what changed since {base}", flush=True)
    try:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "--dist", "load", *found]
        return subprocess.run(command, cwd=ROOT, timeout=SECONDS, check=False).returncode
    except subprocess.TimeoutExpired:
        print(f"stopped after {SECONDS:.0f} s without a failure: make test runs the rest")
        return 0


if __name__ == "__main__":
    sys.exit(main())
