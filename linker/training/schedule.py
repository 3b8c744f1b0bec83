"""Learning rates: their schedule over the steps, and the groups of parameters that share one."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import torch
from torch import nn

Schedule: TypeAlias = Literal["linear", "constant"]


def learning_rate_scale(step: int, total: int, warmup: float, schedule: Schedule = "linear") -> float:
    """Return the factor on the learning rate at step `step` (from 0) of `total`.

    It rises from 0 to 1 over the share `warmup` of all steps, if that is not 0. Then it falls linearly to 0 at the end
    ("linear") or stays 1 ("constant").
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
    """Return trainable parameters grouped by learning rate and weight decay, in the form of torch's optimizers.

    `rate` and `decays` map a parameter's name to its learning rate and whether it decays. One-dimensional parameters
    (biases, gains of norms) never decay. `base_lr` in a group is its unscaled rate.
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
    """Set every group's learning rate to `scale` times its `base_lr`."""
    for group in optimizer.param_groups:
        group["lr"] = group["base_lr"] * scale
