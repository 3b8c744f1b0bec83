"""The number of cores available to this process."""

import os
from pathlib import Path

import pytest

from indexes import cores


@pytest.mark.parametrize(
    ("quota", "count"), [("max 100000", 8), ("150000 100000", 2), ("50000 100000", 1), ("", 8)]
)
def test_a_containers_quota_bounds_the_cores(
    quota: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
    monkeypatch.setattr(cores, "QUOTA", tmp_path / "cpu.max")
    assert cores.cores() == 8  # without control groups
    (tmp_path / "cpu.max").write_text(quota + "\n")
    assert cores.cores() == count
