"""Adam with groups for α, the word vectors and the rest; word vectors may be updated sparsely."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from linker.training.config import TrainingConfig
from linker.training.schedule import parameter_groups, scale_rates


class Optimizer:
    """AdamW, and SparseAdam for word vectors whose gradients are sparse, behind one set of calls.

    A sparse step touches only the tokens of the batch, moments included: what large vocabularies need, and not quite
    Adam, which also moves on what it saw before.
    """

    def __init__(self, module: nn.Module, config: TrainingConfig) -> None:
        """Group the parameters by learning rate and decay; `config.sparse` makes the embedding's gradient sparse."""
        embedding = module.get_submodule("embedding")
        assert isinstance(embedding, nn.Embedding)
        embedding.sparse = config.sparse
        dense: list[tuple[str, nn.Parameter]] = []
        sparse: list[nn.Parameter] = []
        for name, parameter in module.named_parameters():
            if _is_word_vector(name) and config.sparse:
                sparse.append(parameter)
            else:
                dense.append((name, parameter))

        def rate(name: str) -> float:
            if name.endswith("raw_alpha"):
                return config.lr * config.alpha_lr
            return config.lr * (config.embedding_lr if _is_word_vector(name) else 1.0)

        self.parts: list[torch.optim.Optimizer] = []
        if dense:
            groups = parameter_groups(
                dense, config.weight_decay, rate, lambda name: not _is_word_vector(name)
            )
            self.parts.append(torch.optim.AdamW(groups))
        if sparse:
            lr = rate("embedding.weight") or 1e-30
            self.parts.append(torch.optim.SparseAdam([{"params": sparse, "lr": lr, "base_lr": lr}]))

    def set_rate(self, scale: float) -> None:
        """Set every group's learning rate to `scale` times its own."""
        for part in self.parts:
            scale_rates(part, scale)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def step(self, clip: float) -> None:
        """Scale the gradient down to a norm of `clip` and take a step."""
        gradients = list(self._gradients())
        norm = torch.stack([g.norm() for g in gradients]).norm()
        scale = (clip / (norm + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(scale)
        for part in self.parts:
            part.step()

    def state(self) -> dict[str, Tensor]:
        """Return all moments and step counts by name."""
        return {
            f"{p}.{number}.{name}": torch.as_tensor(value)
            for p, part in enumerate(self.parts)
            for number, moments in part.state_dict()["state"].items()
            for name, value in moments.items()
        }

    def load(self, state: dict[str, Tensor]) -> None:
        """Take up what `state` returned."""
        for p, part in enumerate(self.parts):
            moments: dict[int, dict[str, Tensor | int]] = {}
            for name, value in state.items():
                owner, number, moment = name.split(".")
                if int(owner) == p:
                    kept = int(value) if moment == "step" and self._counts(part) else value
                    moments.setdefault(int(number), {})[moment] = kept
            part.load_state_dict({"state": moments, "param_groups": part.state_dict()["param_groups"]})

    @staticmethod
    def _counts(part: torch.optim.Optimizer) -> bool:
        return isinstance(part, torch.optim.SparseAdam)  # its steps are numbers, AdamW's are tensors

    def _gradients(self) -> Iterator[Tensor]:
        """Yield each gradient's values; a sparse one's are summed by token first."""
        for part in self.parts:
            for parameter in (p for group in part.param_groups for p in group["params"]):
                if parameter.grad is not None and parameter.grad.is_sparse:
                    parameter.grad = parameter.grad.coalesce()
                    yield parameter.grad._values()  # a view: scaling it scales the gradient
                elif parameter.grad is not None:
                    yield parameter.grad


def _is_word_vector(name: str) -> bool:
    return name.startswith("embedding.")
