"""Compiled kernels and their loader: the certified scan, BM25, features, linear models, sparse products, sampling.

Each loop is optional: if it cannot be used, its caller computes the same with numpy, scipy, Python or FAISS.
"""

import ctypes
import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["KERNELS", "call", "load", "status"]

SWITCH = "LINKER_NATIVE"  # 0 turns all kernels off
NEEDS = "AVX-512 VNNI"  # the CPU instructions that the scan needs


@dataclass(frozen=True)
class Kernel:
    """A C file of this folder: its VERSION, and the fallback without it, in words."""

    version: int
    instead: str
    # return types of functions that do not return an int
    returns: Mapping[str, Any] = field(default_factory=dict)
    uses: str = "compiled"


KERNELS = {
    "scan": Kernel(
        2,
        "FAISS is used instead",
        {"encode": ctypes.c_double, "scan": ctypes.c_int64},
        f"8-bit codes by {NEEDS}",
    ),
    "postings": Kernel(
        11,
        "numpy is used instead",
        {"count": ctypes.c_int64, "number": ctypes.c_int64, "terms_of": ctypes.c_int64},
    ),
    "features": Kernel(2, "Python is used instead, far slower"),
    "linear": Kernel(2, "numpy is used instead"),
    "products": Kernel(1, "scipy is used instead"),
    "sampling": Kernel(1, "numpy is used instead, far slower"),
}


@functools.cache
def load(name: str, brief: bool = False) -> Any:
    """Return the library of one of `KERNELS`, or None if it cannot be used; `status` says why.

    Its functions release the GIL, unless they are `brief`: a thread that releases the GIL, even for microseconds, gets
    it back only after another thread's turn.
    """
    return _load(name, "PyDLL" if brief else "CDLL")[0]


def status(name: str) -> str:
    """Return a phrase that says whether one of `KERNELS` is used, and if not, why not."""
    return _load(name)[1]


def _load(name: str, loader: str = "CDLL") -> tuple[Any, str]:
    kernel = KERNELS[name]
    if os.environ.get(SWITCH) == "0":
        return None, f"off ({SWITCH}=0): {kernel.instead}"
    paths = (Path(__file__).with_name(f"_{name}{suffix}") for suffix in EXTENSION_SUFFIXES)
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        return None, f"not built (no C compiler at installation?): {kernel.instead}"
    try:
        library = getattr(ctypes, loader)(str(path))
        if library.version() != kernel.version:
            return None, f"{path.name} was built from another version: install again; {kernel.instead}"
        if name == "scan" and not library.supported():
            return None, f"the processor lacks {NEEDS}: {kernel.instead}"
        for function, kind in kernel.returns.items():
            getattr(library, function).restype = kind
    except (OSError, AttributeError) as e:
        return None, f"{path.name} cannot be loaded ({e}): {kernel.instead}"
    return library, kernel.uses


_Place = ctypes.c_char * 0  # a type that is passed as a pointer


def call(function: Any, *arguments: Any) -> Any:
    """Call a compiled function: arrays become pointers, None a null pointer, integers int64."""
    return function(*map(_argument, arguments))


def _argument(value: Any) -> Any:
    if isinstance(value, int):
        return ctypes.c_int64(value)
    if isinstance(value, np.ndarray):
        try:
            # four times as fast as `__array_interface__`
            return _Place.from_buffer(value.data)
        except TypeError:  # read-only, or not contiguous
            return ctypes.c_void_p(value.__array_interface__["data"][0])
    return value
