"""Training in several processes, started by torchrun: each encodes a share of every batch.

The negatives of a text are the batch's other documents, so that averaging the losses of parts, as
DistributedDataParallel does, would change the training. Here, vectors are gathered, every process computes the same
loss over all of them, and the gradients of the shares add up to those of a single process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, distributed, nn

from indexes.dtypes import Int64Array


@dataclass(frozen=True, slots=True)
class World:
    """The number of this process, from 0, and the number of processes."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and evaluates."""
        return self.rank == 0

    def share(self, count: int) -> Int64Array:
        """Return which of `count` rows this process encodes, int64 [r]; r ≥ 1 even with fewer rows than processes."""
        return _share(count, self.rank, self.size)

    def gather(self, own: Tensor, count: int) -> Tensor:
        """Return the rows of all processes, [count, d], in order; gradients flow only into `own`, [r, d]."""
        if self.size == 1:
            return own
        shares = [_share(count, rank, self.size) for rank in range(self.size)]
        longest = max(map(len, shares))
        padded = own.new_zeros((longest, own.shape[1]))
        padded[: len(own)] = own.detach()
        parts = [torch.empty_like(padded) for _ in shares]
        distributed.all_gather(parts, padded)
        parts[self.rank] = own
        gathered = torch.cat([part[: len(rows)] for part, rows in zip(parts, shares, strict=True)])
        _, first = np.unique(np.concatenate(shares), return_index=True)
        return gathered[torch.from_numpy(first).to(gathered.device)]

    def share_weights(self, module: nn.Module) -> None:
        """Copy the weights of the first process to all others."""
        if self.size > 1:
            for parameter in module.parameters():
                distributed.broadcast(parameter.data, 0)

    def add_gradients(self, module: nn.Module) -> None:
        """Replace every gradient by its sum over the processes."""
        if self.size == 1:
            return
        for parameter in module.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            if parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()
            distributed.all_reduce(parameter.grad)

    def agree(self, numbers: list[float]) -> list[float]:
        """Return the numbers of the first process, in all processes."""
        if self.size == 1:
            return numbers
        message = torch.tensor(numbers, dtype=torch.float64, device=_wire())
        distributed.broadcast(message, 0)
        return [float(x) for x in message.tolist()]

    def wait(self) -> None:
        """Wait until every process has called this."""
        if self.size > 1:
            distributed.barrier()


def join() -> World:
    """Return the processes that torchrun started, after connecting to them, or the world of a single process."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return World()
    if not distributed.is_initialized():
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return World(distributed.get_rank(), size)


def leave() -> None:
    """Disconnect from the other processes, if there are any."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _wire() -> str:
    return "cuda" if distributed.get_backend() == "nccl" else "cpu"


def _share(count: int, rank: int, size: int) -> Int64Array:
    rows = np.arange(rank, count, size)
    return rows if len(rows) else np.zeros(1, dtype=np.int64)  # encoded twice, but used once
