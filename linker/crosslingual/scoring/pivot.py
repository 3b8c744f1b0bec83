"""A pivot language (the LINA.cl run of BUCC 2015): pages of a third language, linked to targets, add support."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.scoring.candidates import PagePairScorer

PivotMode = Literal["filter", "boost"]


@dataclass(frozen=True, eq=False)
class Pivoted:
    """score(s, t) = n(s, t) + support(s, t), where support is the greatest n(s, g) of the pivot pages g linked to t.

    `direct` scores source × target pages, `through` source × pivot pages; `links`: int64 [l, 2], the rows of linked
    pivot and target pages. The mode "filter" drops pairs without support, "boost" keeps them.
    """

    direct: PagePairScorer
    through: PagePairScorer
    links: Int64Array
    mode: PivotMode = "filter"

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of source and target pages."""
        return self.direct.shape

    def block(self, begin: int, end: int) -> Float32Array:
        """Return the scores of the source pages begin … end−1: float32 [end − begin, targets]."""
        scores = self.direct.block(begin, end)
        support = self.support(begin, end)
        scores += support
        return scores if self.mode == "boost" else np.where(support > 0, scores, np.float32(0))

    def support(self, begin: int, end: int) -> Float32Array:
        """Return the integer part of the greatest n(s, g) for each target: float32 [end − begin, targets]."""
        result = np.zeros((end - begin, self.shape[1]), np.float32)
        if len(self.links):
            links = self.links[np.argsort(self.links[:, 1], kind="stable")]
            starts = np.flatnonzero(np.diff(links[:, 1], prepend=-1))
            shared = np.floor(self.through.block(begin, end))
            result[:, links[starts, 1]] = np.maximum.reduceat(shared[:, links[:, 0]], starts, axis=1)
        return result
