"""What the learned methods learn from links, and the interface of scores for candidates only."""

from dataclasses import dataclass
from typing import Protocol

import scipy.sparse as sp

from indexes.dtypes import Float32Array, Int64Array
from linker.crosslingual.scoring.products import Scores


class PairScores(Protocol):
    """Scores that are too expensive for all pairs and computed for candidates only."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores."""
        ...

    def features(self, rows: Int64Array, candidates: Int64Array) -> Float32Array:
        """Return float32 [n, c, names] for source pages `rows` [n] and their `candidates` [n, c]."""
        ...


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned from links: scores for all pairs [n, m] or given pairs, and scores for candidates only.

    `induced` holds the distinctness of the word pairs learned from links, `translations` the weights of all word pairs:
    CSR [v source, v target].
    """

    scores: Scores
    pairs: PairScores
    induced: sp.csr_array
    translations: sp.csr_array
    links: Int64Array
