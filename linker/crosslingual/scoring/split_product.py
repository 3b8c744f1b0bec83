"""An exact product of two sparse matrices in dense row blocks: frequent columns by BLAS, rare ones by posting lists.

A term of half of all pages contributes to a quarter of all pairs, and a sparse product spends its time there. The
few hundred such columns are cheaper as a dense product; the others have few entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from indexes.dtypes import Float32Array
from linker.crosslingual.scoring.sparse import PostingLists

# Where both cost the same: a pair by posting lists takes about 1.2 ns, a cell of a dense column about 0.025 ns.
DENSE_SHARE = 0.02


@dataclass(frozen=True, eq=False)
class SplitProduct:
    """left · rightᵀ as two products: c' common columns, and c'' rare ones.

    `left_common` CSR [n, c'], `right_common` float32 [c', m]; `left_rare` CSR [n, c''], `right_rare` [c'', m].
    """

    left_common: csr_array
    right_common: Float32Array
    left_rare: csr_array
    right_rare: PostingLists

    @classmethod
    def of(cls, left: csr_array, right: csr_array, dense_share: float = DENSE_SHARE) -> Self:
        """Return the product of `left` [n, c] and `right` [m, c] transposed.

        Columns that contribute to a larger share of pairs than `dense_share` become dense.
        """
        n, m = left.shape[0], right.shape[0]
        left_pages = np.bincount(left.indices, minlength=left.shape[1]).astype(np.float64)
        meetings = left_pages * np.bincount(right.indices, minlength=left.shape[1])
        common = np.flatnonzero(meetings > dense_share * n * m)
        rare = np.flatnonzero((meetings > 0) & (meetings <= dense_share * n * m))
        dense = np.ascontiguousarray(right[:, common].T.toarray(), np.float32)
        rest = right[:, rare]
        del right  # which may be the last reference to a large matrix
        return cls(left[:, common], dense, left[:, rare], PostingLists.of(csr_array(rest.tocsc().T)))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns of the product."""
        return self.left_common.shape[0], self.right_common.shape[1]

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the rows begin … end−1 of the product: float32 [end − begin, m]."""
        result: Float32Array = self.left_common[begin:end].toarray() @ self.right_common
        self.right_rare.add_to(result, self.left_rare[begin:end])
        return result
