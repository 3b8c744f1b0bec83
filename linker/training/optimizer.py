"""Adam with separate rates for α, the word vectors and all other parameters; word vectors can be updated sparsely."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from linker.training.config import TrainingConfig
from linker.training.schedule import parameter_groups, scale_rates


class Optimizer:
    """AdamW, together with SparseAdam for word vectors with sparse gradients.

    A sparse step updates only the vectors of the batch's tokens and their moments, as large vocabularies require. It is
    not quite Adam, whose momentum also moves the vectors of earlier batches' tokens.
    """

    def __init__(self, module: nn.Module, config: TrainingConfig) -> None:
        """Group a module's parameters by learning rate and decay; with `config.sparse`, make word gradients sparse."""
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
            if name.startswith("key_inputs."):
                return config.lr * config.inputs_lr
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
        """Set every group's learning rate to `scale` times its base rate."""
        for part in self.parts:
            scale_rates(part, scale)

    def zero_grad(self) -> None:
        """Delete the gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def step(self, clip: float) -> None:
        """Scale the gradient down to a norm of at most `clip` and take a step."""
        gradients = list(self._gradients())
        norm = torch.stack([g.norm() for g in gradients]).norm()
        scale = (clip / (norm + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(scale)
        for part in self.parts:
            part.step()

    def state(self) -> dict[str, Tensor]:
        """Return all moments and step counts as tensors by name."""
        return {
            f"{p}.{number}.{name}": torch.as_tensor(value)
            for p, part in enumerate(self.parts)
            for number, moments in part.state_dict()["state"].items()
            for name, value in moments.items()
        }

    def load(self, state: dict[str, Tensor]) -> None:
        """Restore the tensors that `state` returned."""
        for p, part in enumerate(self.parts):
            moments: dict[int, dict[str, Tensor | int]] = {}
            for name, value in state.items():
                owner, number, moment = name.split(".")
                if int(owner) == p:
                    moments.setdefault(int(number), {})[moment] = (
                        int(value) if moment == "step" and self._counts(part) else value
                    )
            part.load_state_dict({"state": moments, "param_groups": part.state_dict()["param_groups"]})

    @staticmethod
    def _counts(part: torch.optim.Optimizer) -> bool:
        # SparseAdam's step count is a number, AdamW's is a tensor
        return isinstance(part, torch.optim.SparseAdam)

    def _gradients(self) -> Iterator[Tensor]:
        """Yield the values of each gradient; values of a sparse one are first summed per token."""
        for part in self.parts:
            for parameter in (p for group in part.param_groups for p in group["params"]):
                if parameter.grad is not None and parameter.grad.is_sparse:
                    parameter.grad = parameter.grad.coalesce()
                    yield parameter.grad._values()  # a view: scaling it scales the gradient
                elif parameter.grad is not None:
                    yield parameter.grad


def _is_word_vector(name: str) -> bool:
    return name.startswith("embedding.")
