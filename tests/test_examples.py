"""Every example runs as written, in its own process, and the folder's README names it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAYS = {
    "search.py": "2 documents are left",
    "own_encoder.py": "dense   p1",
    "find_posts.py": "2 of 2 judged posts are relevant",
    "evaluate_run.py": "95 % interval of MRR",
    "compare_runs.py": "recip_rank",
    "link_pages.py": "f1 → e2",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(example: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, example], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[example.name] in done.stdout
    assert not done.stderr
    assert not list(tmp_path.iterdir())
    assert f"[{example.name}]" in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
