"""What was learned from links, keyed by term strings, not columns, so that it also serves later pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from indexes.arrays import normalised
from indexes.dtypes import BoolArray, Float32Array, Float64Array, Int64Array
from linker.crosslingual.lexicon.lexicon import Lexicon
from linker.crosslingual.pages.pages import Pages, Terms
from linker.crosslingual.scoring.candidates import Hashes, hashes, tie_breaks
from linker.crosslingual.scoring.comparability import idf
from linker.crosslingual.scoring.dense import fit_lsi
from linker.crosslingual.scoring.scores import weighted_by
from linker.crosslingual.scoring.topics import PolylingualTopics

Vectors = tuple[Float32Array, Float32Array]


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """One language of a latent space: v `terms`, their `idf` float32 [v] and `components` float32 [v, k]."""

    terms: tuple[str, ...]
    idf: Float32Array
    components: Float32Array

    def vectors(self, pages: Terms) -> Float32Array:
        """Return n pages as unit vectors, float32 [n, k]; zeros for a page without a known term."""
        counts = onto(pages, self.terms)
        return normalised(weighted_by(counts, self.idf) @ self.components)


@dataclass(frozen=True, eq=False)
class RowTopics:
    """Polylingual topics, with the terms of each language's rows."""

    terms: tuple[tuple[str, ...], tuple[str, ...]]
    model: PolylingualTopics

    def mixtures(self, source: Terms, target: Terms) -> tuple[Float64Array, Float64Array]:
        """Return the topic mixtures of both collections: float64 [n, k] and [m, k]."""
        both = zip((source, target), self.terms, strict=True)
        first, second = (self.model.fold_in(onto(pages, terms), i) for i, (pages, terms) in enumerate(both))
        return first, second


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What was learned from links: word pairs with G², latent spaces, topics (cascade only), and the links' hashes.

    `links`: hashes of both texts of each link, uint64 [l, 2], so that no link is learned from twice. `often`: in how
    many of `pages` source pages each term occurred, so that idf is known even if few pages are linked.
    """

    words: Mapping[tuple[str, str], float] = field(default_factory=dict)
    spaces: tuple[tuple[HalfSpace, HalfSpace], ...] = ()
    topics: RowTopics | None = None
    links: Hashes = field(default_factory=lambda: np.empty((0, 2), np.uint64))
    often: Mapping[str, int] = field(default_factory=dict)
    pages: int = 0

    def relation(self, source: Terms, target: Terms) -> sp.csr_array:
        """Return the word pairs over two vocabularies: float32 CSR of G² [v source, v target]."""
        return Lexicon(dict(self.words)).relation(source, target)

    def latent(self, source: Terms, target: Terms) -> list[Vectors]:
        """Return the unit vectors of both collections in each space: float32 [n, k] and [m, k]."""
        return [(a.vectors(source), b.vectors(target)) for a, b in self.spaces]

    def has(self, links: Int64Array, source: Pages, target: Pages) -> BoolArray:
        """Return which of `links` (int64 [l, 2], rows of pages) were already learned from: bool [l]."""
        return np.isin(_mix(fingerprints(links, source, target)), _mix(self.links))

    def taken(self, source: Pages, target: Pages) -> Int64Array:
        """Return the target pages that were linked to a page that is not among the source pages: int64 [t], rows."""
        elsewhere = ~np.isin(self.links[:, 0], hashes(source.texts))
        return np.flatnonzero(np.isin(hashes(target.texts), self.links[elsewhere, 1]))

    def with_idf(self, source: Terms) -> Terms:
        """Return the terms with the frequencies on the earlier pages added, for idf."""
        if not self.pages:
            return source
        often = np.array([self.often.get(term, 0) for term in source.vocabulary], np.int64)
        return replace(source, background=(often, self.pages))


def fingerprints(links: Int64Array, source: Pages, target: Pages) -> Hashes:
    """Return hashes of the two texts of each link (int64 [l, 2]): uint64 [l, 2]."""
    ours = hashes([source.texts[row] for row in links[:, 0].tolist()])
    theirs = hashes([target.texts[row] for row in links[:, 1].tolist()])
    return np.stack([ours, theirs], axis=1)


def _mix(links: Hashes) -> Hashes:
    return tie_breaks(links[:, 0], links[:, 1])


def word_pairs(induced: sp.csr_array, source: Terms, target: Terms) -> dict[tuple[str, str], float]:
    """Return the entries of a translation matrix [v source, v target] by the strings of their terms."""
    entries = sp.coo_array(induced)
    rows, columns, strengths = entries.row.tolist(), entries.col.tolist(), entries.data.tolist()
    return {
        (source.vocabulary[row], target.vocabulary[column]): strength
        for row, column, strength in zip(rows, columns, strengths, strict=True)
    }


def latent_space(
    links: Int64Array, source: Terms, target: Terms, weights: tuple[sp.csr_array, sp.csr_array], size: int
) -> tuple[HalfSpace, HalfSpace]:
    """Return the space of `size` dimensions that `links` span, over the terms of linked pages only.

    `links`: int64 [l, 2], at least two; `weights`: tf-idf rows of both collections, [n, v source] and [m, v target].
    """
    lsi = fit_lsi(weights[0][links[:, 0]], weights[1][links[:, 1]], size)
    first, second = (
        _half(terms, components, terms.present[links[:, side]])
        for side, (terms, components) in enumerate(((source, lsi.source), (target, lsi.target)))
    )
    return first, second


def onto(pages: Terms, terms: Sequence[str]) -> sp.csr_array:
    """Return the counts of n pages over other `terms`: CSR [n, v]; terms that no page contains are empty columns."""
    known = [(pages.position[term], i) for i, term in enumerate(terms) if term in pages.position]
    rows, columns = zip(*known, strict=True) if known else ((), ())
    shape = (len(pages.vocabulary), len(terms))
    select = sp.csr_array((np.ones(len(known), np.float32), (rows, columns)), shape=shape)
    return sp.csr_array(pages.counts.astype(np.float32) @ select)


def join(vectors: Sequence[Vectors]) -> Vectors:
    """Return vectors [n, k₁ + k₂ + …] whose dot products are the mean dot products over the spaces."""
    scale = np.float32(1 / np.sqrt(len(vectors)))
    left, right = (np.concatenate([pair[side] for pair in vectors], axis=1) * scale for side in (0, 1))
    return left, right


def _half(terms: Terms, components: Float32Array, linked: sp.csr_array) -> HalfSpace:
    columns = np.unique(linked.indices)
    names = tuple(terms.vocabulary[column] for column in columns.tolist())
    return HalfSpace(names, idf(terms)[columns], components[columns])
