"""Loads what was compiled: the certified scan, BM25, a ranker's features, linear models, sparse products, sampling."""

from __future__ import annotations

import ctypes
import functools
import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import numpy as np

SWITCH = "LINKER_NATIVE"  # 0 turns all of them off
NEEDS = "AVX-512 VNNI"  # for the scan
ROOMS = {
    "scan": "vectors",
    "postings": "text",
    "features": "text",
    "linear": "text",
    "products": "text",
    "sampling": "text",
}  # the folder that holds source and library
VERSIONS = {"scan": 2, "postings": 5, "features": 2, "linear": 1, "products": 1, "sampling": 1}  # as in C
INSTEAD = {
    "scan": "FAISS is used instead",
    "postings": "numpy is used instead",
    "features": "Python is used instead, far slower",
    "linear": "numpy is used instead",
    "products": "scipy is used instead",
    "sampling": "numpy is used instead, far slower",
}


@functools.cache
def load() -> Any:
    """Return the library of the scan, or None where it cannot be used; `status` says why."""
    return _load_scan()[0]


@functools.cache
def load_postings() -> Any:
    """Return the library of BM25's inner loops, or None where it cannot be used; `postings_status` says why."""
    library = _load("postings")[0]
    if library is not None:
        library.number.restype = ctypes.c_int64
    return library


@functools.cache
def load_features() -> Any:
    """Return the library of a ranker's features, or None where it cannot be used; `features_status` says why."""
    return _load("features")[0]


@functools.cache
def load_linear() -> Any:
    """Return the library of linear models over BM25, or None where it cannot be used; `linear_status` says why."""
    return _load("linear")[0]


@functools.cache
def load_products() -> Any:
    """Return the library of sparse products, or None where it cannot be used; `products_status` says why."""
    return _load("products")[0]


@functools.cache
def load_sampling() -> Any:
    """Return the library of Gibbs sampling, or None where it cannot be used."""
    return _load("sampling")[0]


def status() -> str:
    """Return a phrase that says whether the compiled scan is used, and if not, why."""
    return _load_scan()[1]


def postings_status() -> str:
    """Return a phrase that says whether BM25 is scored by the compiled loop, and if not, why."""
    return _load("postings")[1]


def features_status() -> str:
    """Return a phrase that says whether a ranker's features are computed by the compiled loop, and if not, why."""
    return _load("features")[1]


def linear_status() -> str:
    """Return a phrase that says whether linear models over BM25 are added up by the compiled loop, and if not, why."""
    return _load("linear")[1]


def products_status() -> str:
    """Return a phrase that says whether sparse products are computed by the compiled loop, and if not, why."""
    return _load("products")[1]


def _load_scan() -> tuple[Any, str]:
    library, phrase = _load("scan")
    try:
        if library is not None and not library.supported():
            return None, f"the processor lacks {NEEDS}: {INSTEAD['scan']}"
        if library is not None:
            library.encode.restype = ctypes.c_double
            library.scan.restype = ctypes.c_int64
            phrase = f"8-bit codes by {NEEDS}"
    except AttributeError as e:
        return None, f"the scan cannot be loaded ({e}): {INSTEAD['scan']}"
    return library, phrase


def _load(name: str) -> tuple[Any, str]:
    if os.environ.get(SWITCH) == "0":
        return None, f"off ({SWITCH}=0): {INSTEAD[name]}"
    path = next(
        (
            p
            for s in EXTENSION_SUFFIXES
            if (p := Path(__file__).with_name(ROOMS[name]) / f"_{name}{s}").exists()
        ),
        None,
    )
    if path is None:
        return None, f"not built (no C compiler at installation?): {INSTEAD[name]}"
    try:
        library = ctypes.CDLL(str(path))
        if library.version() != VERSIONS[name]:
            return None, f"{path.name} was built from another version: install again; {INSTEAD[name]}"
    except (OSError, AttributeError) as e:
        return None, f"{path.name} cannot be loaded ({e}): {INSTEAD[name]}"
    return library, "compiled"


def call(function: Any, *arguments: Any) -> Any:
    """Call a compiled function without the GIL: arrays become pointers, None a null pointer, integers int64."""
    return function(*map(_argument, arguments))


def pointers(*arguments: Any) -> list[Any]:
    """Return the arguments as `call` converts them, for repeated calls; the caller must keep the arrays alive."""
    return list(map(_argument, arguments))


def _argument(value: Any) -> Any:
    if isinstance(value, int):
        return ctypes.c_int64(value)
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.__array_interface__["data"][0])
    return value
