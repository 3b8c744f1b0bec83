"""Modules with the shapes of a model but no weights, to compare with a file before it is read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class _WithoutValues(TorchFunctionMode):
    """Skips the initialisation of weights, which have no values on the device "meta": it would import for seconds."""

    FILLS = frozenset({"normal_", "uniform_", "trunc_normal_", "fill_", "zero_"})

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call `func`, unless it initialises weights: then return them unchanged."""
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in self.FILLS:
            return args[0] if args else kwargs["tensor"]  # torch.nn.init returns the result
        return func(*args, **kwargs)


@contextmanager
def without_values() -> Iterator[None]:
    """Build modules with shapes and types but without memory, in this thread only."""
    with torch.device("meta"), _WithoutValues():
        yield
