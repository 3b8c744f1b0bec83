"""An exact product of two sparse matrices in dense row blocks: frequent columns by BLAS, rare ones by posting lists.

A term on half of all pages contributes to a quarter of all pairs, and a sparse product spends its time there. The
few hundred such columns are cheaper as a dense product; the others have few entries.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from indexes.dtypes import Float32Array, Int64Array
from indexes.kernels.products import TILE, PostingLists
from linker.crosslingual.pages.pages import column_sizes

# Break-even point: a pair via posting lists takes about 1.2 ns, a cell of a dense column about 0.025 ns.
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
    def of(
        cls,
        left: csr_array,
        right: csr_array,
        dense_share: float = DENSE_SHARE,
        selection: Int64Array | None = None,
    ) -> Self:
        """Return the product of `left` [n, c] and `right` [m, c] transposed.

        Columns that contribute to a larger share of pairs than `dense_share` become dense. `selection`: the rows of
        `right` to use, int64 [m], by default all; they are copied one tile at a time.
        """
        n = left.shape[0]
        rows = np.arange(right.shape[0]) if selection is None else selection
        parts = [rows[begin : begin + TILE] for begin in range(0, max(len(rows), 1), TILE)]
        meetings = column_sizes(left).astype(np.float64) * sum(column_sizes(right[part]) for part in parts)
        often = meetings > dense_share * n * len(rows)
        common, rare = np.flatnonzero(often), np.flatnonzero((meetings > 0) & ~often)
        dense = np.empty((len(common), len(rows)), np.float32)
        tiles = []
        for i, part in enumerate(parts):
            tile = right[part]
            dense[:, i * TILE : i * TILE + len(part)] = tile[:, common].T.toarray()
            tiles.append(csr_array(tile[:, rare].T))
        shape = len(rare), len(rows)
        return cls(left[:, common], dense, left[:, rare], PostingLists.of_tiles(tiles, shape))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns of the product."""
        return self.left_common.shape[0], self.right_common.shape[1]

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the rows begin … end−1 of the product: float32 [end − begin, m]."""
        result: Float32Array = self.left_common[begin:end].toarray() @ self.right_common
        self.right_rare.add_to(result, self.left_rare[begin:end])
        return result
