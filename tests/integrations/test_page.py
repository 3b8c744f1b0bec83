"""The examples of docs/integrations.md run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

EXAMPLES = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/integrations.md").read_text(encoding="utf-8"), re.DOTALL
)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_runs(number: int, tmp_path: Path) -> None:
    for name in re.findall(r"^from (\w+)", EXAMPLES[number], re.MULTILINE):
        pytest.importorskip(name)
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES[number]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
