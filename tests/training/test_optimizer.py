"""Learning rates and decay by kind of parameter, and the optimizer's input at each training step."""

import dataclasses
import math
from pathlib import Path

import pytest
import torch
from torch import nn

from linker.training import checkpoint, loop
from linker.training.checkpoint import TrainingProgress, load_checkpoint, save_checkpoint
from linker.training.config import TrainingConfig
from linker.training.optimizer import Optimizer
from linker.training.schedule import learning_rate_scale
from tests.training import tiny
from tests.training.tiny import CONFIG, encoder


def model() -> nn.Module:
    """One parameter of each kind."""
    module = nn.Module()
    module.embedding = nn.Embedding(3, 2)
    module.linear = nn.Linear(2, 2)
    module.raw_alpha = nn.Parameter(torch.zeros(2))
    return module


def test_rates_and_decay_by_kind_of_parameter() -> None:
    module = model()
    config = TrainingConfig(lr=0.1, alpha_lr=3.0, embedding_lr=0.5, weight_decay=0.2)
    (part,) = Optimizer(module, config).parts
    found = {
        id(parameter): (group["lr"], group["weight_decay"])
        for group in part.param_groups
        for parameter in group["params"]
    }
    named = {name: found[id(parameter)] for name, parameter in module.named_parameters()}
    assert named == {
        "raw_alpha": pytest.approx((0.3, 0)),
        "embedding.weight": pytest.approx((0.05, 0)),  # words not in a batch keep their vectors
        "linear.weight": pytest.approx((0.1, 0.2)),
        "linear.bias": pytest.approx((0.1, 0)),
    }


def test_without_decay_or_clipping_it_is_plain_adam() -> None:
    ours, theirs = model(), model()
    theirs.load_state_dict(ours.state_dict())
    optimizer, adam = (
        Optimizer(ours, TrainingConfig(lr=0.1, clip=math.inf)),
        torch.optim.Adam(theirs.parameters(), 0.1),
    )
    for _ in range(3):
        for module in (ours, theirs):
            module.zero_grad()
            loss = torch.stack([p.square().sum() + p.sum() for p in module.parameters()]).sum()
            torch.autograd.backward(1e6 * loss)
        optimizer.set_rate(1.0)
        optimizer.step(math.inf)
        adam.step()
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(own, other)


def test_every_step_trains_at_its_rate_and_clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, steps = tiny.encoder(), []

    class Recorder(Optimizer):
        def step(self, clip: float) -> None:
            rates = [group["lr"] / group["base_lr"] for part in self.parts for group in part.param_groups]
            steps.append((clip, encoder.module.training, rates))
            super().step(clip)

    monkeypatch.setattr(loop, "Optimizer", Recorder)
    config = dataclasses.replace(tiny.CONFIG, epochs=2, clip=0.5, warmup=0.2)
    loop.train(encoder, tiny.pairs(1), None, config, tmp_path / "model")
    assert len(steps) == 10
    for number, (clip, training, rates) in enumerate(steps):
        assert (clip, training) == (0.5, True)
        assert rates == pytest.approx([learning_rate_scale(number, 10, 0.2)] * len(rates))


def test_the_random_numbers_of_a_gpu_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    # has no such state
    assert load_checkpoint(tmp_path / "cpu", module, optimizer, "here") == TrainingProgress(2)
