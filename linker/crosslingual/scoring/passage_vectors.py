"""Pages as sequences of passages with a vector each, and the cost of aligning two such sequences."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import Float32Array, Float64Array, Int64Array
from linker.crosslingual.scoring.alignment import MOVES
from linker.crosslingual.scoring.dense import chunks, pack
from linker.encoders.interface import Encoder

LONGEST, SHORTEST = 300, 100  # Latin letters: longer lines are split, shorter ones joined
BATCH = 1024  # passages encoded at a time
MOST = max(a for a, _ in MOVES)  # maximum number of passages of one page in a bead


@dataclass(frozen=True, eq=False)
class PassageVectors:
    """The passages of n pages: `vectors` [p, d], rows of length 1 or 0, float32 or CSR; `begin` int64 [n + 1].

    Page i has the rows begin[i] … begin[i + 1] − 1, in the order of its text.
    """

    vectors: Float32Array | sp.csr_array
    begin: Int64Array

    @cached_property
    def owner(self) -> Int64Array:
        """Page of each passage: int64 [p]."""
        return np.repeat(np.arange(len(self.begin) - 1), np.diff(self.begin))

    @cached_property
    def mean(self) -> Float64Array:
        """Mean of the vectors: float64 [d]; its dot product with a vector is the mean cosine with all passages."""
        total = np.asarray(self.vectors.sum(axis=0), np.float64).ravel()
        return np.divide(total, max(1, self.vectors.shape[0]))

    @cached_property
    def lengths(self) -> list[Float64Array]:
        """Lengths of the sums of 1, 2, … consecutive vectors from each passage on: float64 [p] each.

        A passage without a vector is treated as orthogonal to all others; otherwise, joining it would cost little.
        """
        same, following, after = (self._products(lag) for lag in range(MOST))
        same = np.where(same > 0, same, 1.0)
        pairs = windows(same, 2) + 2 * following
        triples = windows(same, 3) + 2 * windows(following, 2) + 2 * after
        return [np.sqrt(np.maximum(squares, 1e-12)) for squares in (same, pairs, triples)]

    def _products(self, lag: int) -> Float64Array:
        """Return the dot product of each vector with the vector `lag` passages later: float64 [p], 0 for the last."""
        size = self.vectors.shape[0]
        values = np.zeros(size)
        x, y = self.vectors[: max(0, size - lag)], self.vectors[lag:]
        if isinstance(x, np.ndarray):
            values[: len(x)] = np.einsum("ij,ij->i", x, np.asarray(y))
        else:
            values[: x.shape[0]] = sp.csr_array(x.multiply(y)) @ np.ones(x.shape[1])
        return values


def windows(values: Float64Array, size: int) -> Float64Array:
    """Return the sums of up to `size` consecutive values starting at each value: float64 [n]."""
    total = np.concatenate(([0.0], np.cumsum(values)))
    end = np.minimum(np.arange(len(values)) + size, len(values))
    return total[end] - total[:-1]


def extents(parts: Sequence[Sequence[str]]) -> Int64Array:
    """Return the index of each text's first passage among all passages, and their number: int64 [n + 1]."""
    return np.concatenate(([0], np.cumsum([len(part) for part in parts], dtype=np.int64)))


def passages(text: str) -> list[str]:
    """Return a text's passages of 100 to 300 letters: whole lines where possible; wide characters count as four."""
    return pack((piece for line in text.split("\n") for piece in chunks(line, LONGEST)), LONGEST, SHORTEST)


def encode_passages(
    encoder: Encoder, texts: Sequence[str], advance: Callable[[int], object] = lambda count: None
) -> PassageVectors:
    """Encode each passage once, batched by length; `advance` is called with the number of texts encoded."""
    parts = [passages(text) for text in texts]
    return encode_parts(encoder, parts, advance)


def encode_parts(
    encoder: Encoder, parts: Sequence[Sequence[str]], advance: Callable[[int], object] = lambda count: None
) -> PassageVectors:
    """Encode texts that are already split: `parts` holds the passages of each."""
    begin = extents(parts)
    flat = [passage for part in parts for passage in part]
    vectors = np.zeros((len(flat), encoder.dim), np.float32)
    done = 0
    for first in range(0, len(flat), BATCH):
        last = min(first + BATCH, len(flat))
        order = sorted(range(first, last), key=lambda row: len(flat[row]))
        vectors[order] = encoder.encode([flat[row] for row in order])
        finished = int(np.searchsorted(begin[1:], last, side="right"))
        advance(finished - done)
        done = finished
    advance(len(parts) - done)
    return PassageVectors(vectors, begin)


def cosines_of(
    source: PassageVectors, target: PassageVectors, row: int, columns: Int64Array
) -> tuple[Float32Array, Int64Array]:
    """Return the cosines of a page's n passages with those of c pages, side by side, and the rows of the latter.

    float32 [c, n, m], 0 beyond a page's last passage; int64 [c, m], −1 there; m is the largest number of passages of
    a page.
    """
    begin, end = target.begin[columns], target.begin[columns + 1]
    places = begin[:, None] + np.arange(int((end - begin).max(initial=0)))
    places = np.where(places < end[:, None], places, -1)
    rows = slice(*source.begin[row : row + 2].tolist())
    product = source.vectors[rows] @ target.vectors[places[places >= 0]].T
    values = np.asarray(product if isinstance(product, np.ndarray) else product.toarray(), np.float32)
    cosines = np.zeros((len(values), *places.shape), np.float32)
    cosines[:, places >= 0] = values
    return cosines.transpose(1, 0, 2), places
