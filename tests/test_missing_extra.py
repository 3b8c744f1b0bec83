"""A command whose library is missing names the extra; .ci/wheel runs all of them in an environment without any."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from indexes.errors import install
from linker.errors import EXTRA_OF
from tests import bare
from tests.helpers import ROOT, linker

COMMANDS = (
    "similarity train pairs --out model",
    "similarity predict model pairs",
    "sts train pairs --out model",
    "sts predict model pairs",
    "sts evaluate model pairs",
)
# In a process of their own: modules that were imported without their library must not stay.
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(), None))
from linker.cli import main
for command in sys.argv[2:]:
    sys.argv = ["linker", *command.split()]
    try:
        main()
    except SystemExit as e:
        print(e.code)
"""


def test_a_command_without_its_library_names_the_extra(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, " ".join(EXTRA_OF), *COMMANDS],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["1"] * len(COMMANDS), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(COMMANDS)
    for line in lines:
        assert line.startswith("error: this command (")
        assert line.endswith(install("train"))


def test_ci_tries_every_command() -> None:
    assert bare.commands() == set(bare.RUNS), "say in tests/bare.py with which arguments it runs"


def test_the_extras_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRA_OF.values()) <= set(project["optional-dependencies"])


def test_another_missing_module_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "linker.doctor", None)
    with pytest.raises(ModuleNotFoundError, match=r"linker\.doctor"):
        linker("doctor")
