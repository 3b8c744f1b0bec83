"""Aligned passages of linked pages, in text order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
from scipy.special import expit, logit, ndtr

from indexes.dtypes import Float32Array, Float64Array, Int64Array
from linker.base.progress import bar
from linker.crosslingual.aligned.units import Unit, cut
from linker.crosslingual.aligned.vectors import ByWords, Parts, Vectoriser, present
from linker.crosslingual.lexicon.induction import induce
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.scoring.alignment import MOVES, Costs, Move, align, posterior
from linker.crosslingual.scoring.candidates import DECIMALS
from linker.crosslingual.scoring.passage_vectors import MOST, PassageVectors, cosines_of, windows

GROUP = 64  # pairs of pages whose vectors are in memory at a time
SAMPLED = 64  # pairs of pages from which typical distances are estimated
VARIANCE = 6.8  # variance of a translation's length, per character of the original
# Gale & Church's probabilities of the moves. They give none for one-to-three; ours is a tenth of that for two-to-two.
PRIORS = {(1, 1): 0.89, (1, 2): 0.0445, (2, 1): 0.0445, (2, 2): 0.011, (1, 3): 0.0011, (3, 1): 0.0011}
SKIPPED = 0.0099 / 2
ROUNDS = 2  # rounds of aligning and learning from the alignment; further rounds did not help
LEARNED_FROM = 2000  # pairs of pages to learn from, evenly spaced
# Temperature of random alignments, as a share of the cost of skipping a passage; what is added to the log odds that
# they contain a pair, times the vectoriser's slope. Chosen on dev of benchmarks.aligned_sentences, as were the slopes.
TEMPERATURE, OFFSET = 0.2, -0.6
EDGE = 1e-6  # probabilities are clipped to at least this distance from 0 and 1


@dataclass(frozen=True, eq=False)
class PassageCosts:
    """Costs of aligning pages of two collections; `skip`: the cost of leaving a passage out.

    Joining a source and b target passages costs a · b · (1 − cosine), divided by the mean of their average distances
    to all passages of the other collection (Thompson & Koehn sample random passages instead). A link between two
    unrelated passages thus costs about 1. The vector of several passages is the sum of their vectors, whereas
    Thompson & Koehn encode the joined text. `means`: the mean vectors of two larger collections, float64 [d] each, if
    these pages are only a part of them.
    """

    source: PassageVectors
    target: PassageVectors
    skip: float
    means: tuple[Float64Array, Float64Array] | None = None

    @cached_property
    def source_distances(self) -> list[Float64Array]:
        """Mean distances of 1, 2, … source passages to all target passages: float64 [p] each."""
        return _mean_distances(self.source, self.means[1] if self.means else self.target.mean)

    @cached_property
    def target_distances(self) -> list[Float64Array]:
        """Mean distances of 1, 2, … target passages to all source passages: float64 [q] each."""
        return _mean_distances(self.target, self.means[0] if self.means else self.source.mean)

    def between(self, row: int, cosines: Float32Array, places: Int64Array) -> Costs:
        """Return the costs of aligning a source page with c target pages, from the result of `cosines_of`.

        Skipping a position beyond a page's last passage is free.
        """
        begin, end = self.source.begin[row : row + 2].tolist()
        moves = {}
        for a, b in MOVES:
            if a <= end - begin and b <= places.shape[1]:
                x = slice(begin, end - a + 1)
                first, last = places[:, : places.shape[1] - b + 1], places[:, b - 1 :]
                product = _sums(cosines, a, b)
                product /= self.source.lengths[a - 1][x, None] * self.target.lengths[b - 1][first][:, None]
                typical = self.source_distances[a - 1][x, None] + self.target_distances[b - 1][first][:, None]
                # Rounded, because rounding errors would otherwise join two pairs of equal passages.
                distance = np.maximum(1 - np.round(product, DECIMALS), 0)
                cost = 2 * a * b * distance / np.maximum(typical, 1e-6)
                moves[a, b] = np.where(last[:, None] >= 0, cost, np.inf)
        source_skips = np.full((len(places), end - begin), self.skip)
        return Costs(moves, source_skips, np.where(places >= 0, self.skip, 0.0))


def _mean_distances(collection: PassageVectors, other: Float64Array) -> list[Float64Array]:
    products = np.asarray(collection.vectors @ other, np.float64).ravel()
    return [1 - windows(products, a) / collection.lengths[a - 1] for a in range(1, MOST + 1)]


def _sums(cosines: Float32Array, a: int, b: int) -> Float64Array:
    """Return the sums of a × b neighbouring entries of the last two axes: float64 [..., n − a + 1, m − b + 1]."""
    n, m = cosines.shape[-2:]
    total = np.zeros((*cosines.shape[:-2], n - a + 1, m - b + 1))
    for i in range(a):
        for j in range(b):
            total += cosines[..., i : n - a + 1 + i, j : m - b + 1 + j]
    return total


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

    `score`, from 0 to 1: how much linking them saves, relative to the cost of skipping them; `probability`: that
    exactly these passages translate each other, if their pages do.
    """

    link: PageLink
    source: tuple[str, ...]
    target: tuple[str, ...]
    score: float
    probability: float


@dataclass(frozen=True, slots=True)
class PageAlignment:
    """All aligned passages of two linked pages, and how many of each page's passages were skipped."""

    passages: tuple[AlignedPassages, ...]
    source_skipped: int
    target_skipped: int


def align_pages(
    source: Pages, target: Pages, links: Sequence[PageLink], vectoriser: Vectoriser, unit: Unit
) -> Iterator[PageAlignment]:
    """Yield each pair's alignment, with distances relative to those of 64 pairs, evenly spaced in `links`."""

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
                between = _costs(costs, row, texts[0], texts[1], ratio, vectoriser.length)
                yield _alignment(link, texts[0], texts[1], between, vectoriser)
                meter.update(1)


def _costs(
    costs: PassageCosts, row: int, source: Sequence[str], target: Sequence[str], ratio: float, share: float
) -> Costs:
    """Return the costs of aligning the two pages at `row`, which are lower if the lengths of the passages agree."""
    between = costs.between(row, *cosines_of(costs.source, costs.target, row, np.array([row])))
    agreed = agreement(_lengths(source), _lengths(target), ratio)
    moves = {move: values[0] * (1 - share * agreed[move]) for move, values in between.moves.items()}
    return Costs(moves, between.source_skips[0], between.target_skips[0])


def _alignment(
    link: PageLink, source: Sequence[str], target: Sequence[str], costs: Costs, vectoriser: Vectoriser
) -> PageAlignment:
    skip = vectoriser.skip
    beads = align(costs)
    linked = [bead for bead in beads if bead.source and bead.target]
    skipped = [bead for bead in beads if not (bead.source and bead.target)]
    odds = logit(np.clip(posterior(costs, linked, TEMPERATURE * skip), EDGE, 1 - EDGE))
    passages = []
    for bead, p in zip(linked, expit(vectoriser.slope * odds + OFFSET).tolist(), strict=True):
        score = 1 - bead.cost / (skip * (len(bead.source) + len(bead.target)))
        texts = tuple(source[i] for i in bead.source), tuple(target[j] for j in bead.target)
        passages.append(AlignedPassages(link, *texts, score, p))
    skips = (sum(len(bead.source) for bead in skipped), sum(len(bead.target) for bead in skipped))
    return PageAlignment(tuple(passages), *skips)


def _ratio(source: Parts, target: Parts) -> float:
    lengths = [sum(len(text) for text in chain.from_iterable(parts)) for parts in (source, target)]
    return lengths[1] / lengths[0] if all(lengths) else 1.0


def _lengths(texts: Sequence[str]) -> Float64Array:
    return np.array([len(text) for text in texts], np.float64)


def learn_words(words: ByWords, links: Sequence[PageLink], unit: Unit) -> ByWords:
    """Return `words` plus the word pairs learned from linked pages and then from their aligned passages.

    Linked pages share the words of a topic, aligned passages the words of a sentence, so the second step yields more
    and sharper pairs than the first. Nothing is learned from too few pages.
    """
    chosen = links[:: max(1, -(-len(links) // LEARNED_FROM))]
    x, y = words.terms
    rows = [link.source for link in chosen], [link.target for link in chosen]
    words = replace(words, taught=induce(x.present[rows[0]], y.present[rows[1]]))
    for _ in range(ROUNDS):
        alignments = align_pages(words.source, words.target, chosen, words, unit)
        passages = [one for alignment in alignments for one in alignment.passages]
        source = present([one.source for one in passages], words.source.language, x)
        target = present([one.target for one in passages], words.language, y)
        words = replace(words, taught=induce(source, target))
    return words
