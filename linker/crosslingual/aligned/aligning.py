"""Aligned passages of linked pages, in text order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy.special import ndtr

from indexes.dtypes import Float64Array
from linker.base.progress import bar
from linker.crosslingual.aligned.units import Unit, cut
from linker.crosslingual.aligned.vectors import Parts, Vectoriser
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.scoring.alignment import MOVES, Bead, Costs, Move, align
from linker.crosslingual.scoring.passage_costs import PassageCosts
from linker.crosslingual.scoring.passage_vectors import cosines_of, windows

GROUP = 64  # pairs of pages whose vectors are in memory at a time
SAMPLED = 64  # pairs of pages from which typical distances are estimated


VARIANCE = 6.8  # variance of a translation's length, per character of the original
# Gale & Church's probabilities of the moves. They give none for one-to-three; ours is a tenth of that for two-to-two.
PRIORS = {(1, 1): 0.89, (1, 2): 0.0445, (2, 1): 0.0445, (2, 2): 0.011, (1, 3): 0.0011, (3, 1): 0.0011}
SKIPPED = 0.0099 / 2


def agreement(source: Float64Array, target: Float64Array, ratio: float) -> dict[Move, Float64Array]:
    """Return, per move, the probability that the lengths of translations differ by more than those of these passages.

    `source` [n] and `target` [m]: lengths in characters; `ratio`: target characters per source character. Each move
    a, b has a float64 array [n − a + 1, m − b + 1].
    """
    probabilities = {}
    for a, b in MOVES:
        if a <= len(source) and b <= len(target):
            x = windows(source, a)[: len(source) - a + 1, None]
            y = windows(target, b)[: len(target) - b + 1]
            mean = np.maximum((x + y / ratio) / 2, 1)
            deviation = (ratio * x - y) / np.sqrt(mean * VARIANCE)
            probabilities[a, b] = np.maximum(2 * ndtr(-np.abs(deviation)), 1e-12)
    return probabilities


def gale_church(source: Float64Array, target: Float64Array, ratio: float) -> Costs:
    """Return Gale & Church's costs, from lengths alone: the aligners' baseline. Arguments as in `agreement`."""
    moves = {move: -np.log(p * PRIORS[move]) for move, p in agreement(source, target, ratio).items()}
    skips = -np.log(SKIPPED)
    return Costs(moves, np.full(len(source), skips), np.full(len(target), skips))


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link between two pages, by their rows, with its score in the run."""

    source: int
    target: int
    score: float


@dataclass(frozen=True, slots=True)
class AlignedPassages:
    """Passages of two linked pages that translate each other: one to three of each, in order.

    `score`, from 0 to 1: how much linking them saves, relative to the cost of skipping them.
    """

    link: PageLink
    source: tuple[str, ...]
    target: tuple[str, ...]
    score: float


@dataclass(frozen=True, slots=True)
class PageAlignment:
    """All aligned passages of two linked pages, and how many of each page's passages were skipped."""

    passages: tuple[AlignedPassages, ...]
    source_skipped: int
    target_skipped: int


def align_pages(
    source: Pages, target: Pages, links: Sequence[PageLink], vectoriser: Vectoriser, unit: Unit
) -> Iterator[PageAlignment]:
    """Yield the alignment of each pair of linked pages.

    Distances are compared with those between all passages of 64 pairs of pages, evenly spaced in `links`.
    """

    def cut_pages(part: Sequence[PageLink]) -> tuple[Parts, Parts]:
        return (
            [cut(source.texts[link.source], source.language.code, unit) for link in part],
            [cut(target.texts[link.target], target.language.code, unit) for link in part],
        )

    sample = links[:: max(1, len(links) // SAMPLED)]
    sampled = cut_pages(sample)
    means = tuple(vectors.mean for vectors in vectoriser.vectors(*sampled))
    ratio = _ratio(*sampled)
    with bar(len(links), "aligning", "pages") as meter:
        for begin in range(0, len(links), GROUP):
            group = links[begin : begin + GROUP]
            parts = cut_pages(group)
            costs = PassageCosts(*vectoriser.vectors(*parts), vectoriser.skip, (means[0], means[1]))
            for row, (link, *texts) in enumerate(zip(group, *parts, strict=True)):
                beads = align(_costs(costs, row, texts[0], texts[1], ratio, vectoriser.length))
                yield _alignment(link, texts[0], texts[1], beads, vectoriser.skip)
                meter.update(1)


def _costs(
    costs: PassageCosts, row: int, source: Sequence[str], target: Sequence[str], ratio: float, share: float
) -> Costs:
    """Return the costs of aligning the two pages at `row`, which are lower where the lengths of passages agree."""
    between = costs.between(row, *cosines_of(costs.source, costs.target, row, np.array([row])))
    agreed = agreement(_lengths(source), _lengths(target), ratio)
    moves = {move: values[0] * (1 - share * agreed[move]) for move, values in between.moves.items()}
    return Costs(moves, between.source_skips[0], between.target_skips[0])


def _alignment(
    link: PageLink, source: Sequence[str], target: Sequence[str], beads: Sequence[Bead], skip: float
) -> PageAlignment:
    linked = [bead for bead in beads if bead.source and bead.target]
    passages = tuple(
        AlignedPassages(
            link,
            tuple(source[i] for i in bead.source),
            tuple(target[j] for j in bead.target),
            1 - bead.cost / (skip * (len(bead.source) + len(bead.target))),
        )
        for bead in linked
    )
    skipped = [bead for bead in beads if not (bead.source and bead.target)]
    return PageAlignment(
        passages, sum(len(bead.source) for bead in skipped), sum(len(bead.target) for bead in skipped)
    )


def _ratio(source: Parts, target: Parts) -> float:
    """Return target characters per source character; 1 if either has none."""
    lengths = [sum(len(text) for text in chain.from_iterable(parts)) for parts in (source, target)]
    return lengths[1] / lengths[0] if all(lengths) else 1.0


def _lengths(texts: Sequence[str]) -> Float64Array:
    return np.array([len(text) for text in texts], np.float64)
