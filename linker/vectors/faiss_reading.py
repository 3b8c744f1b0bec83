"""Vectors out of an index that FAISS has written: flat, HNSW, IVF, and reconstructed from codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from indexes.interface import Matrix
from indexes.vectors.faiss_files import load_faiss, no_vector_above
from linker.errors import InputError

EXACT = {
    "IndexFlat",
    "IndexFlatIP",
    "IndexFlatL2",
    "IndexFlat1D",
    "IndexHNSWFlat",
    "IndexIVFFlat",
    "IndexNSGFlat",
}
Read = tuple[Matrix, list[int] | None, tuple[str, ...]]


def read(path: Path) -> Read:
    """Return the vectors of a FAISS index, float32 [n, dim], its own numbers if it has some, and what is lost.

    Raises InputError where the file is no index of FAISS or its vectors cannot be reconstructed, MissingExtraError.
    """
    faiss = load_faiss()
    try:
        with no_vector_above(path.stat().st_size):
            whole = faiss.read_index(str(path))
    except (OSError, RuntimeError, MemoryError) as e:
        raise InputError(f"{path} is neither a .npy file nor an index of FAISS: {_reason(e)}") from e
    index, numbers = whole, None  # `whole` owns what is inside it
    while hasattr(index, "id_map"):
        numbers = faiss.vector_to_array(index.id_map).tolist()
        index = faiss.downcast_index(index.index)
    if not index.ntotal:
        raise InputError(f"{path} holds no vectors")
    return _reconstructed(faiss, path, index), numbers, (_note(faiss, path, index),)


def _reconstructed(faiss: Any, path: Path, index: Any) -> Matrix:
    try:
        inverted = faiss.try_extract_index_ivf(index)
        if inverted is not None:
            inverted.make_direct_map()
        return np.asarray(index.reconstruct_n(0, index.ntotal), np.float32)
    except (RuntimeError, AttributeError) as e:
        raise InputError(
            f"{path}: the vectors of this {type(index).__name__} cannot be reconstructed ({_reason(e)}): "
            "save them as .npy instead"
        ) from e


def _note(faiss: Any, path: Path, index: Any) -> str:
    name, metric = type(index).__name__, "L2" if index.metric_type == faiss.METRIC_L2 else "inner product"
    lossy = (
        ""
        if name in EXACT
        else "; they come from compressed codes or a transformation, so they are approximate"
    )
    return (
        f"{path}: {index.ntotal:,} vectors of {index.d} dimensions from a {name} by {metric}; lengths and structures "
        f"are not taken over: linker compares by cosine and builds its own index{lossy}"
    )


def _reason(error: Exception) -> str:
    """Return FAISS's message without its C++ signature and source file."""
    return str(error).rsplit(": ", 1)[-1].strip() or type(error).__name__
