"""The commands print the same as before code was moved, except for last digits on other processors."""

from pathlib import Path

import pytest

from tests.golden.make_commands import FOLDER, outputs


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return outputs(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("golden", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_a_command_prints_what_it_did(golden: Path, written: dict[str, str]) -> None:
    expected, found = golden.read_text(encoding="utf-8"), written[golden.name]
    if golden.suffix in {".run", ".links"}:
        assert [_with_score(line) for line in found.splitlines()] == [
            _with_score(line) for line in expected.splitlines()
        ]
    else:
        assert found == expected


def _with_score(line: str) -> list[object]:
    *names, score, run = line.split()
    return [*names, pytest.approx(float(score), rel=1e-5), run]


def test_every_output_is_compared(written: dict[str, str]) -> None:
    assert sorted(written) == sorted(path.name for path in FOLDER.iterdir())
