"""Cross-language latent semantic indexing (Dumais et al. 1997): linked pages span a space for both languages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from indexes.arrays import normalised
from indexes.dtypes import Float32Array

EXACT = 3000  # maximum linked pages whose full Gram matrix is decomposed


@dataclass(frozen=True, eq=False)
class CrossLsi:
    """The right singular vectors of both languages: `source` float32 [v_source, k], `target` float32 [v_target, k]."""

    source: Float32Array
    target: Float32Array

    def fold_source(self, weights: sp.csr_array) -> Float32Array:
        """Return tf-idf rows of source pages [n, v_source] as unit vectors, float32 [n, k]; zeros for an empty page."""
        return normalised(weights @ self.source)

    def fold_target(self, weights: sp.csr_array) -> Float32Array:
        """Return tf-idf rows of target pages [m, v_target] as unit vectors, float32 [m, k]; zeros for an empty page."""
        return normalised(weights @ self.target)


def fit_lsi(source: sp.csr_array, target: sp.csr_array, size: int) -> CrossLsi:
    """Return a latent space of at most min(`size`, n − 1) dimensions, learned from n linked pages; deterministic.

    `source` [n, v_source] and `target` [n, v_target] are tf-idf rows, row i linked to row i.
    """
    joined = sp.csr_array(sp.hstack([source, target], format="csr"), dtype=np.float32)
    size = max(1, min(size, joined.shape[0] - 1))
    if joined.shape[0] <= EXACT:
        values, left = np.linalg.eigh((joined @ joined.T).toarray())
        left, values = left[:, ::-1][:, :size], np.sqrt(np.maximum(values[::-1][:size], 1e-12))
        components = (joined.T @ left) / values
    else:
        components = _largest(joined, size)
    components = np.ascontiguousarray(components, dtype=np.float32)
    cut = source.shape[1]
    return CrossLsi(components[:cut], components[cut:])


def _largest(matrix: sp.csr_array, size: int) -> npt.NDArray[Any]:
    """Return right singular vectors [columns, size] of a matrix with too many rows for its Gram matrix."""
    from scipy.sparse.linalg import svds

    start = np.ones(min(matrix.shape), dtype=np.float32)
    return np.asarray(svds(matrix, k=size, v0=start)[2].T)
