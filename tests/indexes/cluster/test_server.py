"""The tests' own server: if it is missing, tests are skipped, or fail under CI=true."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import elastic_server


@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)], ids=["ci", "here"]
)
def test_a_missing_server_cannot_hide_in_ci(
    ci: str, outcome: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKER_ELASTIC_HOME", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="Elasticsearch is not here"):
        elastic_server.require()
