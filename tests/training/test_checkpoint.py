"""A checkpoint holds all state of the next step: on a GPU, also the GPU's random state."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from linker.training import checkpoint
from linker.training.checkpoint import TrainingProgress, load_checkpoint, save_checkpoint
from linker.training.optimizer import Optimizer
from tests.training.tiny import CONFIG, encoder


def test_the_random_numbers_of_a_gpu_continue_where_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = encoder().module
    optimizer = Optimizer(module, CONFIG)
    save_checkpoint(tmp_path / "cpu", module, optimizer, TrainingProgress(2), "here")
    state = {"gpu": torch.arange(16, dtype=torch.uint8)}
    monkeypatch.setattr(checkpoint, "_on_gpu", lambda _: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: state["gpu"])
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda new: state.update(gpu=new))
    save_checkpoint(tmp_path / "gpu", module, optimizer, TrainingProgress(3), "here")
    state["gpu"] = torch.zeros(16, dtype=torch.uint8)
    assert load_checkpoint(tmp_path / "gpu", module, optimizer, "here") == TrainingProgress(3)
    assert state["gpu"].tolist() == list(range(16))
    assert load_checkpoint(tmp_path / "cpu", module, optimizer, "here") == TrainingProgress(
        2
    )  # has no such state
