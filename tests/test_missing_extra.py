"""A command whose library is missing names the extra; .ci/wheel runs all of them without any extra."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from indexes.errors import DISTRIBUTION, install
from linker.base.errors import DISTRIBUTIONS, OURS, extra_of, requirements
from linker.cli import app
from linker.cli.found import every
from tests import bare
from tests.helpers import ROOT, linker

COMMANDS = (
    "similarity train pairs --out model", "similarity predict model pairs", "sts train pairs --out model",
    "sts predict model pairs", "sts evaluate model pairs",
)  # fmt: skip
# In a separate process: modules imported without their library must not stay loaded.
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


def modules() -> list[str]:
    """Return the import names of the packages that the extras install."""
    names = {p.replace("-", "_") for extra, packages in requirements().items() if extra for p in packages}
    return sorted(names | DISTRIBUTIONS.keys())


def test_a_command_without_its_library_names_the_extra(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, " ".join(modules()), *COMMANDS],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["1"] * len(COMMANDS), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(COMMANDS)
    for line in lines:
        assert line.startswith("error: this command (")
        assert line.endswith(install("train"))


def test_ci_tries_every_command() -> None:
    assert every(app).keys() == bare.RUNS.keys(), "say in tests/bare.py with which arguments it runs"


def test_the_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {"": project["dependencies"], **project["optional-dependencies"]}
    for extra in OURS:
        del wanted[extra]
    names = {extra: [re.split(r"[^\w.-]", line)[0] for line in lines] for extra, lines in wanted.items()}
    names = {extra: [name for name in found if name != DISTRIBUTION] for extra, found in names.items()}
    assert requirements() == {extra: found for extra, found in names.items() if found}


def test_a_module_has_its_extra() -> None:
    expected = {
        "torch.nn": "train", "faiss": "cpu", "sklearn": "entities", "transformers": "pretrained", "ir_datasets": "ir",
        "opensearchpy": "opensearch", "starlette": "serve", "opencc": "crosslingual", "numpy": None,
        "linker.cli.checking": None, "": None,
    }  # fmt: skip
    assert {module: extra_of(module) for module in expected} == expected
    assert all(extra_of(module) for module in DISTRIBUTIONS)


def test_without_metadata_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linker.base.errors.DISTRIBUTION", "no-such-distribution")
    assert requirements() == {}
    assert extra_of("torch") is None


def test_the_doctor_asks_the_server_that_the_index_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKER_ELASTIC_URL", "http://127.0.0.1:9, http://127.0.0.1:8")
    report = json.loads(linker("doctor", "--json").stdout)
    assert report["servers"]["elasticsearch"]["url"] == "http://127.0.0.1:9"
    assert report["extras"].keys() == requirements().keys() - {""}


def test_another_missing_module_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "linker.cli.checking", None)
    with pytest.raises(ModuleNotFoundError, match=r"linker\.cli\.checking"):
        linker("doctor")
