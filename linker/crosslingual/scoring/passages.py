"""Late interaction over translated passages: pages that match only in part still have passages that match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp

from indexes.dtypes import Float32Array, Int32Array, Int64Array
from linker.crosslingual.pages.chunks import in_chunks
from linker.crosslingual.pages.pages import Terms
from linker.crosslingual.scoring.comparability import idf
from linker.crosslingual.scoring.scores import scale_columns, stochastic, unit_rows

LENGTH = 30  # terms per passage; shorter lines are joined, lines of more than twice as many are cut
PARTS = ("mean", "best", "best3", "third", "back", "back_third")


def cut_passages(text: str, split: Callable[[str], list[str]]) -> list[list[str]]:
    """Return the terms of a text in passages of about 30, cut at line ends; at least one, which may be empty."""
    passages: list[list[str]] = []
    current: list[str] = []
    for line in text.split("\n"):
        current = current + split(line)
        while len(current) > 2 * LENGTH:
            passages.append(current[:LENGTH])
            current = current[LENGTH:]
        if len(current) >= LENGTH:
            passages.append(current)
            current = []
    if current or not passages:
        passages.append(current)
    return passages


@dataclass(frozen=True, eq=False)
class Passages:
    """All passages of n pages: `present` 0/1 CSR [passages, v], `begin` int64 [n + 1], `weights` of the terms [v].

    Page i has the rows begin[i] … begin[i + 1] − 1.
    """

    present: sp.csr_array
    begin: Int64Array
    weights: Float32Array

    @cached_property
    def vectors(self) -> sp.csr_array:
        """The passages' weighted terms, in rows of unit length: float32 CSR [passages, v]."""
        return unit_rows(scale_columns(self.present, self.weights))


def passages_of(texts: Sequence[str], split: Callable[[str], list[str]], terms: Terms) -> Passages:
    """Return the passages of all texts over the vocabulary of `terms`; other terms are left out."""
    parts = list(in_chunks(partial(_cut, split, terms.position), texts))
    columns, lengths, passages = (
        np.concatenate([np.zeros(0, np.int32), *(p[i] for p in parts)]) for i in range(3)
    )
    ends, begin = (np.concatenate(([0], np.cumsum(x, dtype=np.int64))) for x in (lengths, passages))
    shape = (len(lengths), len(terms.vocabulary))
    return Passages(
        sp.csr_array((np.ones(len(columns), np.float32), columns, ends), shape=shape), begin, idf(terms)
    )


def _cut(
    split: Callable[[str], list[str]], position: Mapping[str, int], texts: Sequence[str]
) -> tuple[Int32Array, Int32Array, Int32Array]:
    """Return the columns of all passages of some texts, the number of columns per passage, and of passages per text."""
    columns: list[int] = []
    lengths, passages = [], []
    for text in texts:
        cut = cut_passages(text, split)
        passages.append(len(cut))
        for passage in cut:
            known = sorted({position[t] for t in passage if t in position})
            columns.extend(known)
            lengths.append(len(known))
    return np.array(columns, np.int32), np.array(lengths, np.int32), np.array(passages, np.int32)


@dataclass(frozen=True, eq=False)
class PassageMatcher:
    """Cosines of translated source passages with target passages, aggregated per candidate page.

    `shares` [v source, v target]: the shares of each term's translations; the masses [passages] are sums of the idf of
    translatable terms.
    """

    source: Passages
    target: Passages
    shares: sp.csr_array
    source_mass: Float32Array
    target_mass: Float32Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores."""
        return tuple(f"passages.{part}" for part in PARTS)

    def features(self, rows: Int64Array, candidates: Int64Array) -> Float32Array:
        """Return float32 [n, c, 6] for the source pages `rows` [n] and their `candidates` [n, c].

        Of each source passage's best cosine on the candidate page: the weighted mean, the maximum, and the means of the
        best three and of the best third. In the other direction: the weighted mean and the mean of the best third.
        """
        out = np.zeros((*candidates.shape, len(PARTS)), np.float32)
        for i, (row, columns) in enumerate(zip(rows.tolist(), candidates, strict=True)):
            out[i] = self._page(row, columns)
        return out

    def _page(self, row: int, columns: Int64Array) -> Float32Array:
        begin, end = self.source.begin[row], self.source.begin[row + 1]
        first, after = self.target.begin[columns], self.target.begin[columns + 1]
        chosen = np.concatenate(
            [np.arange(a, b) for a, b in zip(first.tolist(), after.tolist(), strict=True)]
        )
        starts = np.concatenate(([0], np.cumsum(after - first)[:-1]))
        translated = sp.csr_array(self.source.present[begin:end] @ self.shares, dtype=np.float32)
        vectors = unit_rows(scale_columns(translated, self.target.weights))
        cosines = (vectors @ self.target.vectors[chosen].T).toarray()
        best = np.maximum.reduceat(cosines, starts, axis=1)
        mass = self.source_mass[begin:end]
        ordered = -np.sort(-best, axis=0)
        third = max(1, len(best) // 3)
        back, weight = cosines.max(axis=0), self.target_mass[chosen]
        back_mean = np.add.reduceat(back * weight, starts) / np.add.reduceat(weight, starts)
        back_third = [_best_third(part) for part in np.split(back, starts[1:])]
        forward = (mass @ best / mass.sum(), ordered[0], ordered[:3].mean(0), ordered[:third].mean(0))
        return np.stack([*forward, back_mean, np.array(back_third, np.float32)], axis=1)


def _best_third(values: Float32Array) -> np.float32:
    return np.float32((-np.sort(-values))[: max(1, len(values) // 3)].mean())


def match_passages(source: Passages, target: Passages, translations: sp.csr_array) -> PassageMatcher:
    """Return a matcher of passages, translated by the matrix `translations` [v source, v target], with idf weights."""
    known = np.asarray(translations.sum(axis=1)).ravel() > 0
    reached = np.asarray(translations.sum(axis=0)).ravel() > 0
    return PassageMatcher(
        source,
        target,
        stochastic(translations),
        np.asarray(source.present @ (source.weights * known) + 1e-3, np.float32),
        np.asarray(target.present @ (target.weights * reached) + 1e-3, np.float32),
    )
