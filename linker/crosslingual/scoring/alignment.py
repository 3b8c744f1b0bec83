"""Monotone alignment of two sequences of passages by dynamic programming.

The moves are those of Gale & Church (1993) and of Vecalign (Thompson & Koehn, 2019): some consecutive source passages
with some consecutive target passages, or a passage of one page skipped. Passages never cross, and each is in one bead.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import Float64Array

Move = tuple[int, int]
# Passages of either page in one bead: at most four in total, as in Vecalign. Of equally good moves, the first wins.
MOVES: tuple[Move, ...] = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 2))


@dataclass(frozen=True, slots=True)
class Bead:
    """Ranges of passages that translate each other, one empty if a passage is skipped, and the cost."""

    source: range
    target: range
    cost: float


@dataclass(frozen=True, eq=False)
class Costs:
    """The cost of each move between n source and m target passages.

    `moves[a, b]`: float64 [..., n − a + 1, m − b + 1], the cost of joining source passages i … i + a − 1 to target
    passages j … j + b − 1, infinite if that is impossible; absent if a > n or b > m. `source_skips` [..., n] and
    `target_skips` [..., m]: the finite cost of leaving a passage out. Leading axes are pages aligned side by side.
    """

    moves: Mapping[Move, Float64Array]
    source_skips: Float64Array
    target_skips: Float64Array


def least_costs(costs: Costs) -> Float64Array:
    """Return the cost of the cheapest alignment of the first i with the first j passages: [..., n + 1, m + 1]."""
    return _table(costs, np.minimum)


def _table(costs: Costs, join: np.ufunc) -> Float64Array:
    """Return the costs of all alignments of the first i with the first j passages, joined: [..., n + 1, m + 1].

    All j for one i are computed together: skipping target passages is a running minimum (or other `join`) once the cost
    of skipping the first j is subtracted.
    """
    n, m = costs.source_skips.shape[-1], costs.target_skips.shape[-1]
    skipped = _from_zero(costs.target_skips)
    table = np.empty((*skipped.shape[:-1], n + 1, m + 1))
    table[..., 0, :] = skipped
    for i in range(1, n + 1):
        best = table[..., i - 1, :] + costs.source_skips[..., i - 1, None]
        for (a, b), values in costs.moves.items():
            if a <= i:
                joined = table[..., i - a, : m + 1 - b] + values[..., i - a, :]
                join(best[..., b:], joined, out=best[..., b:])
        table[..., i, :] = skipped + join.accumulate(best - skipped, axis=-1)
    return table


def align(costs: Costs) -> list[Bead]:
    """Return the cheapest alignment of one pair of pages, from its first passages to its last.

    Of equally cheap moves, a bead wins over a skipped passage, and the earlier of `MOVES` over the later.
    """
    table = least_costs(costs)
    beads = []
    i, j = len(costs.source_skips), len(costs.target_skips)
    while i or j:
        ends = list(_ends(costs, i, j))
        # The table's sums have rounding errors, which must not decide between equal moves.
        totals = [round(table[i - a, j - b] + cost, 9) for a, b, cost in ends]
        a, b, cost = ends[totals.index(min(totals))]
        beads.append(Bead(range(i - a, i), range(j - b, j), cost))
        i, j = i - a, j - b
    return beads[::-1]


def posterior(costs: Costs, beads: Sequence[Bead], temperature: float) -> Float64Array:
    """Return the probabilities [beads] that linking beads are part of a random alignment of one pair of pages.

    An alignment has the probability exp(−cost / `temperature`), up to a constant factor. The sums over all alignments
    are computed from the first passages and from the last (forward-backward algorithm).
    """
    moves = {move: -values / temperature for move, values in costs.moves.items()}
    weights = Costs(moves, -costs.source_skips / temperature, -costs.target_skips / temperature)
    backwards = Costs(
        {move: values[::-1, ::-1] for move, values in moves.items()},
        weights.source_skips[::-1],
        weights.target_skips[::-1],
    )
    before, after = _table(weights, np.logaddexp), _table(backwards, np.logaddexp)[::-1, ::-1]
    logs = [
        before[bead.source.start, bead.target.start]
        - bead.cost / temperature
        + after[bead.source.stop, bead.target.stop]
        for bead in beads
    ]
    return np.asarray(np.exp(np.minimum(np.array(logs) - before[-1, -1], 0)))


def _ends(costs: Costs, i: int, j: int) -> Iterator[tuple[int, int, float]]:
    """Yield the sizes and the cost of each move that ends after i source and j target passages."""
    for a, b in MOVES:
        if a <= i and b <= j and (a, b) in costs.moves:
            yield a, b, float(costs.moves[a, b][i - a, j - b])
    if i:
        yield 1, 0, float(costs.source_skips[i - 1])
    if j:
        yield 0, 1, float(costs.target_skips[j - 1])


def _from_zero(values: Float64Array) -> Float64Array:
    return np.cumsum(np.concatenate((np.zeros((*values.shape[:-1], 1)), values), axis=-1), axis=-1)
