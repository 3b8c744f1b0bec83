"""Two processes make the training of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from linker.encoders import folder as folders
from linker.training.parallel import World, join

TINY = Path(__file__).with_name("tiny.py")
ROOT = TINY.parents[2]


def train(out: Path, processes: int, *options: str) -> list[dict[str, Any]]:
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, *(torchrun if processes > 1 else []), str(TINY), str(out), *options]
    subprocess.run(command, check=True, capture_output=True, env=environment, timeout=300)
    return [json.loads(line) for line in (out / "training/metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("options", [(), ("--sparse", "--crop")])
def test_two_processes_have_the_loss_curve_of_one(tmp_path: Path, options: tuple[str, ...]) -> None:
    alone, together = (train(tmp_path / str(n), n, *options) for n in (1, 2))
    assert [row["step"] for row in alone] == [row["step"] for row in together]
    for name in ("loss", "dev_mrr"):
        figures = [[row[name] for row in rows if name in row] for rows in (alone, together)]
        np.testing.assert_allclose(figures[1], figures[0], atol=2e-4)
    first, second = (folders.load(tmp_path / str(n)).module.state_dict() for n in (1, 2))
    for name, weights in first.items():
        torch.testing.assert_close(second[name], weights, atol=2e-3, rtol=2e-3)


def test_shares_cover_every_row_once() -> None:
    for size in (1, 2, 3, 7):
        for count in (1, 2, 5, 8):
            shares = [World(rank, size).share(count).tolist() for rank in range(size)]
            assert {row for share in shares for row in share} == set(range(count))
            assert all(shares)  # no process is without work: its gradients would be missing
            if count >= size:
                assert sum(map(len, shares)) == count


def test_alone_there_is_nothing_to_agree_on() -> None:
    world, vectors = join(), torch.ones(3, 2)
    assert world == World()
    assert world.gather(vectors, 3) is vectors
    assert world.agree([0.5]) == [0.5]
