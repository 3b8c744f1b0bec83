"""A checkpoint in one safetensors file, replaced atomically: weights, moments, random state and progress."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save
from torch import nn

from linker.base.errors import InputError
from linker.base.files import write_atomically
from linker.encoders.weights import opened, with_prefix
from linker.training.optimizer import Optimizer

RANDOM, RANDOM_CUDA = "random", "random_cuda"


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """The progress of a training run: steps taken, the best dev MRR and the number of epochs since."""

    step: int = 0
    best: float = -1.0
    waited: int = 0
    finished: bool = False


def save_checkpoint(
    path: Path, module: nn.Module, optimizer: Optimizer, progress: TrainingProgress, setting: str
) -> None:
    """Write everything on which the next step depends, and `setting`, which identifies data and configuration."""
    tensors = {f"model.{name}": value for name, value in module.state_dict().items()}
    tensors |= {f"optimizer.{name}": value for name, value in optimizer.state().items()}
    tensors[RANDOM] = torch.get_rng_state()
    if _on_gpu(module):
        tensors[RANDOM_CUDA] = torch.cuda.get_rng_state()
    # A header with a single entry, since the order of several would vary.
    header = json.dumps({"progress": dataclasses.asdict(progress), "setting": setting})
    write_atomically(
        path, save({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, {"linker": header})
    )


def load_checkpoint(path: Path, module: nn.Module, optimizer: Optimizer, setting: str) -> TrainingProgress:
    """Restore a checkpoint's state into a module and its optimizer and return the progress. Raises InputError."""
    try:
        with opened(path, "pt") as file:
            header = json.loads((file.metadata() or {}).get("linker", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
        if not isinstance(header, dict):
            raise ValueError("its header is not an object")
    except (InputError, ValueError, RecursionError) as e:
        raise InputError(f"{path} is damaged: {e}; train again without `resume`") from None
    if header.get("setting") != setting:
        raise InputError(
            f"{path} was written with different data or settings: use those to continue, or train again "
            f"without `resume` ({_difference(header.get('setting', ''), setting)})"
        )
    try:
        module.load_state_dict(with_prefix(tensors, "model."))
        optimizer.load(with_prefix(tensors, "optimizer."))
        torch.set_rng_state(tensors[RANDOM])
        # a checkpoint that was written on a CPU has no such state
        if _on_gpu(module) and RANDOM_CUDA in tensors:
            torch.cuda.set_rng_state(tensors[RANDOM_CUDA])
        return TrainingProgress(**header["progress"])
    except (LookupError, TypeError, ValueError, RuntimeError) as e:
        raise InputError(f"{path} is damaged: {e}; train again without `resume`") from None


def _on_gpu(module: nn.Module) -> bool:
    return next(module.parameters()).device.type == "cuda"


def _difference(old: str, new: str) -> str:
    try:
        before, after = json.loads(old), json.loads(new)
    except ValueError:
        return "it holds no settings"
    changed = (k for k in before.keys() | after.keys() if before.get(k) != after.get(k))
    return ", ".join(f"{k}: {before.get(k)!r}, now {after.get(k)!r}" for k in sorted(changed))
