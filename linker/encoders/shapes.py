"""Modules that have the shapes of a model but no weights: what a file is compared with before it is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class _WithoutValues(TorchFunctionMode):
    """Leave out what fills new weights: on the device "meta" they have no values, and imports of seconds are saved."""

    FILLS = frozenset({"normal_", "uniform_", "trunc_normal_", "fill_", "zero_"})

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Return the weights as they are for a function that would fill them; call any other."""
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in self.FILLS:
            return args[0] if args else kwargs["tensor"]  # so torch.nn.init hands it on
        return func(*args, **kwargs)


@contextmanager
def without_values() -> Iterator[None]:
    """Build modules that have shapes and types but take no memory, in this thread alone."""
    with torch.device("meta"), _WithoutValues():
        yield
