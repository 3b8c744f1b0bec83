"""Documentation, help texts and docstrings keep to the words in .vale/linker; `.ci/vale` installs vale."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers import ROOT

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "linker"
PAGES = (
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs", "examples", "linker", "indexes",
)  # fmt: skip


@pytest.fixture(scope="module")
def vale() -> str:
    """Return the program; without it the tests are skipped, but fail if CI should have built it."""
    found = shutil.which("vale") or next((str(path) for path in sorted(CACHE.glob("vale-*/vale"))), None)
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("there is no vale: run .ci/vale")
        pytest.skip("needs vale: run .ci/vale")
    return found


def complaints(vale: str, *paths: str | Path) -> list[str]:
    command = [vale, f"--config={ROOT / '.vale.ini'}", "--output=line", *map(str, paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


def test_pages_and_docstrings(vale: str) -> None:
    assert not complaints(vale, *PAGES)


def test_help_texts_and_routes(vale: str, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    from docs.hooks.commands import commands_page
    from docs.hooks.routes import routes_page

    (tmp_path / "commands.md").write_text(commands_page(), encoding="utf-8")
    (tmp_path / "routes.md").write_text(routes_page(), encoding="utf-8")
    assert not complaints(vale, tmp_path)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("Words", "The index is built anew."),
        ("Per", "It answers 300 queries a CPU-second."),
        ("NounClauses", "It reads. What cannot be read goes to quarantine."),
        ("Articles", "Index is written at once."),
    ],
)
def test_each_rule_finds_what_it_is_for(vale: str, rule: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(sentence + "\n", encoding="utf-8")
    (tmp_path / "module.py").write_text(f'"""{sentence}"""\n', encoding="utf-8")
    found = complaints(vale, tmp_path / "page.md", tmp_path / "module.py")
    assert [line.split(":")[0].rpartition("/")[2] for line in found if f"linker.{rule}" in line] == [
        "page.md",
        "module.py",
    ]
