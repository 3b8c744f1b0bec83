"""Two processes train exactly like one."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import distributed, multiprocessing, nn

from linker.encoders import folder as folders
from linker.training.parallel import World, join
from tests.training.test_loop import tiny

TINY = Path(__file__).with_name("tiny.py")
ROOT = TINY.parents[2]


def metrics(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "training/metrics.jsonl").read_text().splitlines()]


def train_together(out: Path) -> list[dict[str, Any]]:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, *torchrun, str(TINY), str(out), "--sparse", "--crop"]
    subprocess.run(command, check=True, capture_output=True, env=environment, timeout=300)
    return metrics(out)


def test_two_processes_have_the_loss_curve_of_one(tmp_path: Path) -> None:
    """Word vectors have sparse gradients, all other weights dense ones."""
    tiny.run(tmp_path / "1", dataclasses.replace(tiny.CONFIG, sparse=True, crop=True))
    alone = metrics(tmp_path / "1")
    together = train_together(tmp_path / "2")
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
            assert all(shares)  # every process has work; otherwise its gradients would be missing
            if count >= size:
                assert sum(map(len, shares)) == count


def test_alone_there_is_nothing_to_agree_on() -> None:
    world, vectors = join(torch.device("cpu")), torch.ones(3, 2)
    assert world == World()
    assert world.gather(vectors, 3) is vectors
    assert world.agree([0.5]) == [0.5]


def test_training_on_processors_does_not_exchange_by_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU trains with device = "cpu": NCCL, which does not support CPU tensors, would fail."""
    asked: list[str] = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(distributed, "init_process_group", lambda backend, timeout: asked.append(backend))
    monkeypatch.setattr(distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
    assert join(torch.device("cpu")) == World(1, 2)
    join(torch.device("cuda"))
    assert asked == ["gloo", "nccl"]


class Two(nn.Module):
    """A word table with sparse gradients, one with dense gradients, and a frozen weight."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.kinds = nn.Embedding(6, 2, sparse=True), nn.Embedding(3, 2)
        self.fixed = nn.Parameter(torch.ones(1), requires_grad=False)


def add_up(rank: int, meeting: Path) -> None:
    """Process 0 has seen no word, and process 1 no kind: each must still wait for the other's part."""
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    world, model = World(rank, 2), Two()
    used = model.words(torch.tensor([4, 1, 4])) if rank else model.kinds(torch.tensor([2, 2]))
    torch.autograd.backward((used * (rank + 1)).sum())
    world.add_gradients(model)
    words, kinds = model.words.weight.grad, model.kinds.weight.grad
    assert words is not None
    assert kinds is not None
    assert words.is_sparse
    assert words.to_dense()[:, 0].tolist() == [0, 2, 0, 0, 4, 0]
    assert kinds[:, 0].tolist() == [0, 0, 2]
    assert model.fixed.grad is None
    rows = world.gathered(np.full((3 - rank, 2), rank, dtype=np.float32), 5)
    assert rows[:, 0].tolist() == [0, 1, 0, 1, 0]
    distributed.destroy_process_group()


def test_gradients_add_up_if_a_process_has_none(tmp_path: Path) -> None:
    multiprocessing.spawn(add_up, (tmp_path / "meeting",), nprocs=2)  # type: ignore[no-untyped-call,attr-defined]
