"""Learning rates: how they move over the steps, and which parameters share one. Every training here uses these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import torch
from torch import nn

Schedule: TypeAlias = Literal["linear", "constant"]


def learning_rate_scale(step: int, total: int, warmup: float, schedule: Schedule = "linear") -> float:
    """Return what the learning rate of step `step` (from 0) of `total` is multiplied by.

    It rises from 0 to 1 over the share `warmup` of all steps; without warm-up there is no rise. Then it falls straight
    to 0 at the end ("linear"), or stays ("constant").
    """
    rise = warmup * total
    if step < rise:
        return (step + 1) / (rise + 1)
    return (total - step) / max(total - rise, 1) if schedule == "linear" else 1.0


def parameter_groups(
    parameters: Iterable[tuple[str, nn.Parameter]],
    weight_decay: float,
    rate: Callable[[str], float],
    decays: Callable[[str], bool] = lambda name: True,
) -> list[dict[str, Any]]:
    """Group trainable parameters by learning rate and decay, as torch's optimizers take them.

    Vectors (biases, gains of norms) never decay; `decays` exempts others by name. `base_lr` keeps the group's own rate.
    """
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in parameters:
        if parameter.requires_grad:
            decay = weight_decay if parameter.dim() > 1 and decays(name) else 0.0
            groups.setdefault((rate(name), decay), []).append(parameter)
    return [
        {"params": group, "lr": lr, "base_lr": lr, "weight_decay": decay}
        for (lr, decay), group in groups.items()
    ]


def scale_rates(optimizer: torch.optim.Optimizer, scale: float) -> None:
    """Set every group's learning rate to `scale` times its own."""
    for group in optimizer.param_groups:
        group["lr"] = group["base_lr"] * scale
