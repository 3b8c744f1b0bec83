"""Weights in safetensors files; a file's header is compared with the model before any tensor is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import xxhash
from safetensors import SafetensorError, safe_open

from linker.base.errors import InputError
from linker.encoders.model_folder import CONFIG

if TYPE_CHECKING:
    from torch import Tensor, nn

T = TypeVar("T")
MAX_TENSORS = 100_000
# PyTorch's names of dtypes → safetensors' names.
DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16",
    "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
Shapes: TypeAlias = Mapping[str, tuple[str, list[int]]]  # name of a tensor → (safetensors' dtype, shape)


@contextmanager
def opened(path: Path, framework: str = "numpy") -> Iterator[Any]:
    """Open a safetensors file; the library checks its header against its size. Raises InputError."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would block
            raise InputError(f"{path} is not a regular file: replace it with the file that belongs there")
        with safe_open(path, framework=framework) as file:
            if len(file.keys()) > MAX_TENSORS:
                raise InputError(
                    f"{path} holds more than {MAX_TENSORS:,} tensors: it is not a file of weights"
                )
            yield file
    except (OSError, SafetensorError) as e:
        reason = (os.strerror(e.errno) if isinstance(e, OSError) and e.errno else str(e))[:200]
        raise InputError(f"{path} is missing or damaged: {reason}; copy the model again") from None


def with_prefix(tensors: Mapping[str, T], prefix: str) -> dict[str, T]:
    """Return the tensors whose names begin with a prefix, keyed by the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def check_shapes(path: Path, expected: Shapes) -> None:
    """Raise InputError unless a file holds tensors of exactly the expected names, types and shapes; reads no tensor."""
    with opened(path) as file:
        tensors = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
        present = {name: (part.get_dtype(), part.get_shape()) for name, part in tensors.items()}
    for name in sorted(present.keys() ^ expected.keys() or present.keys()):
        if present.get(name) != expected.get(name):
            raise InputError(
                f"{path} does not belong to the model that {CONFIG} describes: {name} is "
                f"{_shown(present.get(name))}, not {_shown(expected.get(name))}; copy the model again or train it again"
            )


def shapes_of(module: nn.Module) -> Shapes:
    """Return the types and shapes in a module's state; it may be on PyTorch's device "meta"."""
    return {name: (_dtype(value), list(value.shape)) for name, value in module.state_dict().items()}


def load_state(module: nn.Module, path: Path) -> str | None:
    """Read a file's weights into a module and return the fingerprint in its header, if any. Raises InputError."""
    import torch

    check_shapes(path, shapes_of(module))
    with opened(path, "pt") as file:
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
        fingerprint: str | None = (file.metadata() or {}).get("fingerprint")
    for name, value in state.items():
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise InputError(f"{path} is damaged: {name} holds NaN or infinity; copy the model again")
    module.load_state_dict(state)
    return fingerprint


def to_bytes(state: Mapping[str, Tensor], fingerprint: str) -> bytes:
    """Return a module's state as the bytes of a safetensors file, with the model's fingerprint in its header."""
    from safetensors.torch import save

    content: bytes = save(
        {name: value.detach().cpu().contiguous() for name, value in state.items()},
        {"fingerprint": fingerprint},
    )
    return content


def hash_state(state: Mapping[str, Tensor], start: bytes = b"") -> str:
    """Return the XXH3-128 of `start` and the tensors' names, types, shapes and bytes, sorted by name."""
    import torch

    digest = xxhash.xxh3_128(start)
    for name, value in sorted(state.items()):
        digest.update(f"{name} {value.dtype} {list(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def hash_file(path: Path, start: bytes = b"") -> str:
    """Return `hash_state` of the tensors in a file, without PyTorch. Raises InputError if it cannot be read."""
    names, digest = {short: name for name, short in DTYPES.items()}, xxhash.xxh3_128(start)
    with opened(path) as file:
        for name in sorted(file.keys()):
            part = file.get_slice(name)
            digest.update(f"{name} torch.{names.get(part.get_dtype())} {part.get_shape()}".encode())
            try:
                digest.update(np.ascontiguousarray(file.get_tensor(name)).reshape(-1).view(np.uint8).data)
            except TypeError as e:
                raise InputError(f"{path}: {name}: {e}") from None
    return digest.hexdigest()


def _dtype(value: Tensor) -> str:
    name = str(value.dtype).removeprefix("torch.")
    return DTYPES.get(name, name)


def _shown(kind: tuple[str, list[int]] | None) -> str:
    return "missing" if kind is None else f"{kind[0]} {kind[1]}"
