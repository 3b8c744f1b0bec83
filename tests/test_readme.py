"""The README is accurate: its blocks run, its commands exist, its numbers match the results."""

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.helpers import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
ALL = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
BLOCKS = [block for block in ALL if block[0] != "console"]  # a server, which does not end


def test_it_is_short_and_whole() -> None:
    assert {language for language, _ in ALL} == {"python", "sh", "console"}
    assert README.count("\n") <= 120
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_page_answers_at_the_address_that_it_prints(tmp_path: Path) -> None:
    (console,) = (code for language, code in ALL if language == "console")
    (command,) = re.findall(r"^\$ linker (serve .*)$", console, re.MULTILINE)
    started = [sys.executable, "-m", "linker", *command.split(), "--port", "0"]
    with subprocess.Popen(started, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(address) as answer:
                assert "Try it with a sample" in answer.read().decode()
        finally:
            server.terminate()


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block_runs(number: int, tmp_path: Path) -> None:
    language, code = BLOCKS[number]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = (
        [sys.executable, "-c", code] if language == "python" else ["bash", "-euo", "pipefail", "-c", code]
    )
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if language == "sh":
        assert "success_1" in done.stdout
        assert "as they were written" in done.stdout


def test_numbers_are_those_of_the_results() -> None:
    from benchmarks.report.readme import PAGES, render

    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert render(text) == text, f"{page.name}: run python -m benchmarks.report.readme"


def test_the_training_page_is_a_valid_configuration(tmp_path: Path) -> None:
    from linker.base.config import load
    from linker.training.config import TrainConfig

    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "c.toml"
    path.write_text(block, encoding="utf-8")
    config = load(path, TrainConfig)
    assert config.encoder.kind == "star"
    assert config.output.path == Path("model")
