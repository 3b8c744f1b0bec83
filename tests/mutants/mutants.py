"""The fixed list of mutants: lines that matter, each changed in one way that a test must notice.

A list (lists/*.toml) has a table per source file with the tests that guard it, and under it one line per mutant: its
name, a text that occurs in the file exactly once, and its replacement. A mutant may name its own file and tests; one
that no test can distinguish from the original gives the reason under `equivalent`.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).with_name("lists")
SOURCES = ("indexes", "linker")
KEYS = {"name", "path", "old", "new", "tests", "equivalent"}


class ListError(Exception):
    """An entry of the list does not match the tree."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file, and the tests (files or node ids) that must fail with it."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""


def read(lists: Path = LISTS) -> list[Mutant]:
    """Return all mutants, lists in order of their names. Raises ListError if two share a name."""
    tables = [
        table for file in sorted(lists.glob("*.toml")) for table in tomllib.loads(file.read_text())["file"]
    ]
    found = [_mutant(table, entry) for table in tables for entry in table["mutants"]]
    names = [mutant.name for mutant in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ListError(f"two mutants have the name {twice[0]!r}: names must differ")
    return found


def _mutant(table: dict[str, Any], entry: dict[str, Any]) -> Mutant:
    if unknown := entry.keys() - KEYS:
        raise ListError(f"{entry.get('name')}: unknown keys {', '.join(sorted(unknown))}")
    tests = tuple(entry.get("tests", table["tests"]))
    return Mutant(
        entry["name"],
        entry.get("path", table["path"]),
        entry["old"],
        entry["new"],
        tests,
        entry.get("equivalent", ""),
    )


def locate(mutant: Mutant, root: Path = ROOT) -> Path:
    """Return the file to change: the entry's or, if it has moved, the only one that contains the text.

    Raises ListError unless the text occurs there exactly once.
    """
    path = root / mutant.path
    if not path.exists():
        files = (file for package in SOURCES for file in sorted((root / package).rglob(f"*{path.suffix}")))
        holders = [file for file in files if mutant.old in file.read_text(encoding="utf-8")]
        if len(holders) != 1:
            raise ListError(
                f"{mutant.name}: there is no {mutant.path}, and {len(holders)} files hold {mutant.old!r}: "
                "correct the path in tests/mutants/lists"
            )
        path = holders[0]
    if (count := path.read_text(encoding="utf-8").count(mutant.old)) != 1:
        raise ListError(
            f"{mutant.name}: {path.relative_to(root)} holds {mutant.old!r} {count} times instead of once: "
            "correct the entry in tests/mutants/lists"
        )
    return path


def find_test(test: str, root: Path = ROOT) -> str:
    """Return a test's node id; a file that has moved is found by its name. Raises ListError."""
    name, *node = test.split("::")
    if not (root / name).exists():
        files = sorted((root / "tests").rglob(Path(name).name))
        if len(files) != 1:
            raise ListError(f"there is no {name}: correct the path in tests/mutants/lists")
        name = files[0].relative_to(root).as_posix()
    return "::".join([name, *node])
