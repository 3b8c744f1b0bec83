"""The compiled half of the certified scan (scan.c), loaded when it was built and the processor has what it needs."""

from __future__ import annotations

import ctypes
import functools
import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

SWITCH = "LINKER_NATIVE"  # 0 turns it off
NEEDS = "AVX-512 VNNI"
VERSION = 2  # as in scan.c


@functools.cache
def load() -> Any:
    """Return the library, or None where it cannot be used; `status` says why."""
    return _load()[0]


def status() -> str:
    """Say in words whether the compiled scan is used."""
    return _load()[1]


def _load() -> tuple[Any, str]:
    if os.environ.get(SWITCH) == "0":
        return None, f"off ({SWITCH}=0): FAISS scans"
    path = next(
        (p for s in EXTENSION_SUFFIXES if (p := Path(__file__).with_name(f"_scan{s}")).exists()), None
    )
    if path is None:
        return None, "not built (no C compiler at installation?): FAISS scans"
    try:
        library = ctypes.CDLL(str(path))
        if library.version() != VERSION:
            return None, f"{path.name} was built from another version: install again; FAISS scans"
        if not library.supported():
            return None, f"the processor lacks {NEEDS}: FAISS scans"
        library.encode.restype = ctypes.c_double
        library.scan.restype = ctypes.c_int64
    except (OSError, AttributeError) as e:
        return None, f"{path.name} cannot be loaded ({e}): FAISS scans"
    return library, f"8-bit codes by {NEEDS}"


def call(function: Any, *arguments: Any) -> Any:
    """Call with arrays as pointers and whole numbers as int64. The interpreter's lock is released meanwhile."""
    return function(
        *[ctypes.c_int64(a) if isinstance(a, int) else ctypes.c_void_p(a.ctypes.data) for a in arguments]
    )
