"""Training in several processes, started by torchrun: each encodes a share of every batch.

The negatives of a text are the batch's other documents, so averaging the losses of parts, as DistributedDataParallel
does, would change the training. Here, vectors are gathered, every process computes the same loss over all of them,
and the gradients of the shares add up to those of a single process.
"""

import os
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import torch
from torch import Tensor, distributed, nn

from indexes.dtypes import Float32Array, Int64Array

# maximum wait, which is long when the first process queries a teacher; if a process dies, torchrun ends the others
PATIENCE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class World:
    """The index of this process, from 0, and the number of processes."""

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
        parts = self._padded(own, max(map(len, shares)))
        parts[self.rank] = own
        gathered = torch.cat([part[: len(rows)] for part, rows in zip(parts, shares, strict=True)])
        _, first = np.unique(np.concatenate(shares), return_index=True)
        return gathered[torch.from_numpy(first).to(gathered.device)]

    def gathered(self, own: Float32Array, count: int) -> Float32Array:
        """Return the rows of all processes, float32 [count, d], in order; `own` [r, d] are this process's."""
        if self.size == 1:
            return own
        return self.gather(torch.from_numpy(own).to(_wire()), count).cpu().numpy()

    def share_weights(self, module: nn.Module) -> None:
        """Copy the weights of the first process to all others."""
        if self.size > 1:
            for parameter in module.parameters():
                distributed.broadcast(parameter.data, 0)

    def add_gradients(self, module: nn.Module) -> None:
        """Replace every gradient by its sum over the processes."""
        if self.size == 1:
            return
        tables = (part for part in module.modules() if isinstance(part, nn.Embedding) and part.sparse)
        sparse = {id(table.weight) for table in tables}
        for parameter in module.parameters():
            if not parameter.requires_grad:
                continue
            if id(parameter) in sparse:  # even if this process has no gradient, since the others wait for it
                parameter.grad = self._sum_of_rows(parameter)
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            distributed.all_reduce(parameter.grad)

    def _sum_of_rows(self, table: nn.Parameter) -> Tensor:
        """Return the sum of the processes' sparse gradients by gathering rows: NCCL cannot add sparse tensors."""
        rows, values = (
            torch.zeros(0, dtype=torch.int64, device=table.device),
            table.new_zeros((0, table.shape[1])),
        )
        if table.grad is not None:
            own = table.grad.coalesce()
            rows, values = own.indices()[0], own.values()
        counts = [rows.new_zeros(1) for _ in range(self.size)]
        distributed.all_gather(counts, rows.new_tensor([len(rows)]))
        longest = max(map(int, counts))
        parts = [self._padded(own, longest) for own in (rows[:, None], values)]
        rows, values = (
            torch.cat([part[: int(count)] for part, count in zip(every, counts, strict=True)])
            for every in parts
        )
        total = torch.sparse_coo_tensor(rows.T, values, tuple(table.shape), check_invariants=False)
        return total.coalesce()

    def _padded(self, own: Tensor, longest: int) -> list[Tensor]:
        """Return the rows of each process, [longest, d] each: `own`, [n, d], is padded with zeros."""
        padded = own.new_zeros((longest, own.shape[1]))
        padded[: len(own)] = own.detach()
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        distributed.all_gather(parts, padded)
        return parts

    def agree(self, numbers: list[float]) -> list[float]:
        """Return the first process's numbers, in all processes."""
        if self.size == 1:
            return numbers
        message = torch.tensor(numbers, dtype=torch.float64, device=_wire())
        distributed.broadcast(message, 0)
        return [float(x) for x in message.tolist()]

    def wait(self) -> None:
        """Wait until every process has called this."""
        if self.size > 1:
            distributed.barrier()


ALONE = World()


def join(device: torch.device) -> World:
    """Return the processes of torchrun, connected by NCCL on GPUs or Gloo on CPUs, or the only process."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return ALONE
    if not distributed.is_initialized():
        on_gpu = device.type == "cuda"
        if on_gpu:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        distributed.init_process_group("nccl" if on_gpu else "gloo", timeout=PATIENCE)
    return World(distributed.get_rank(), size)


def leave() -> None:
    """Disconnect from the other processes, if there are any."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _wire() -> str:
    return "cuda" if distributed.get_backend() == "nccl" else "cpu"


def _share(count: int, rank: int, size: int) -> Int64Array:
    rows = np.arange(rank, count, size)
    # row 0, which another process encodes, too; only one of the two is used
    return rows if len(rows) else np.zeros(1, dtype=np.int64)
