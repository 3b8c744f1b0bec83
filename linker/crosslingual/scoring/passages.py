"""Late interaction over translated passages: pages that match only in part still have passages that match."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from indexes.cores import cores
from indexes.dtypes import Float32Array, Int32Array, Int64Array
from indexes.kernels.products import Factor
from linker.crosslingual.pages.chunks import in_chunks
from linker.crosslingual.pages.pages import Terms, narrow
from linker.crosslingual.scoring.comparability import idf
from linker.crosslingual.scoring.sparse import scale_columns, stochastic, unit_rows

LENGTH = 30  # terms per passage; shorter lines are joined, lines of more than twice as many terms are split
PAGES = 32  # pages whose passages are compared together
PARTS = ("mean", "best", "best3", "third", "back", "back_third")


def cut_passages(text: str, split: Callable[[str], list[str]]) -> list[list[str]]:
    """Return a text's terms in passages of about 30, split at line ends; at least one passage, possibly empty."""
    passages: list[list[str]] = []
    current: list[str] = []
    for line in text.split("\n"):
        current = current + split(line)
        start = 0
        while len(current) - start > 2 * LENGTH:
            passages.append(current[start : start + LENGTH])
            start += LENGTH
        current = current[start:]
        if len(current) >= LENGTH:
            passages.append(current)
            current = []
    if current or not passages:
        passages.append(current)
    return passages


@dataclass(frozen=True, eq=False)
class Passages:
    """The passages of n pages: `present` 0/1 CSR [passages, v], page i's from begin[i]; `weights` of terms [v]."""

    present: sp.csr_array
    begin: Int64Array
    weights: Float32Array

    @cached_property
    def vectors(self) -> sp.csr_array:
        """The passages' weighted terms, in rows of unit length: float32 CSR [passages, v]."""
        return unit_rows(scale_columns(self.present, self.weights))

    @cached_property
    def factor(self) -> Factor:
        """The vectors as the right-hand factor of a matrix product."""
        return Factor.of(self.vectors)

    def of(self, pages: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return where each page's passages start, int64 [c], and the passages of all `pages` [c], int64 [p]."""
        sizes = np.diff(self.begin)[pages]
        first = np.cumsum(sizes) - sizes
        return first, np.arange(sizes.sum()) + np.repeat(self.begin[pages] - first, sizes)


def passages_of(texts: Sequence[str], split: Callable[[str], list[str]], terms: Terms) -> Passages:
    """Return the passages of all texts over the vocabulary of `terms`; other terms are left out."""
    parts = list(in_chunks(partial(_cut, split, terms.position), texts))
    columns, lengths, passages = (
        np.concatenate([np.zeros(0, np.int32), *(p[i] for p in parts)]) for i in range(3)
    )
    ends, begin = (np.concatenate(([0], np.cumsum(x, dtype=np.int64))) for x in (lengths, passages))
    shape = (len(lengths), len(terms.vocabulary))
    return Passages(
        sp.csr_array((np.ones(len(columns), np.float32), columns, narrow(ends)), shape=shape),
        begin,
        idf(terms),
    )


def _cut(
    split: Callable[[str], list[str]], position: Mapping[str, int], texts: Sequence[str]
) -> tuple[Int32Array, Int32Array, Int32Array]:
    """Return the columns of all passages, the number of columns per passage, and the number of passages per text."""
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

        From each source passage's best cosine on the candidate page: the weighted mean, the maximum, and the means of
        the best three and of the best third. In the other direction: the weighted mean and the mean of the best
        third.
        """
        out = np.zeros((*candidates.shape, len(PARTS)), np.float32)

        def fill(begin: int) -> None:
            part = slice(begin, begin + PAGES)
            out[part] = self._pages(rows[part], candidates[part])

        with ThreadPoolExecutor(cores()) as pool:
            list(pool.map(fill, range(0, len(rows), PAGES)))
        return out

    def _pages(self, rows: Int64Array, candidates: Int64Array) -> Float32Array:
        """Return the features of a few pages; their passages are translated together."""
        mine, (first, chosen) = self.source.of(rows)[1], self.target.of(candidates.ravel())
        sizes = np.diff(self.source.begin)[rows]
        ends = np.append(first, len(chosen))[:: candidates.shape[1]]
        columns = [chosen[a:b] for a, b in pairwise(ends.tolist())]
        others = np.concatenate([np.tile(c, s) for c, s in zip(columns, sizes.tolist(), strict=True)])
        begin = np.concatenate(([0], np.cumsum(np.repeat(np.diff(ends), sizes))))
        translated = sp.csr_array(self.source.present[mine] @ self.shares, dtype=np.float32)
        vectors = unit_rows(scale_columns(translated, self.target.weights))
        cosines = self.target.factor.dots(vectors, begin, others)
        out = []
        at = np.concatenate(([0], np.cumsum(sizes)))
        for i, targets in enumerate(columns):
            block = cosines[begin[at[i]] : begin[at[i + 1]]].reshape(sizes[i], len(targets))
            starts = first[i * candidates.shape[1] : (i + 1) * candidates.shape[1]] - ends[i]
            out.append(
                _aggregate(
                    block, starts, self.source_mass[mine[at[i] : at[i + 1]]], self.target_mass[targets]
                )
            )
        return np.stack(out)


def _aggregate(
    cosines: Float32Array, starts: Int64Array, mass: Float32Array, target_mass: Float32Array
) -> Float32Array:
    """Return the features [c, 6] of a page from its passages' cosines [p, q] with those of c candidate pages.

    The passages of each candidate begin at `starts` [c]; `mass` [p] and `target_mass` [q]: the passages' weights.
    """
    best = np.maximum.reduceat(cosines, starts, axis=1)
    ordered = -np.sort(-best, axis=0)
    third = max(1, len(best) // 3)
    back = cosines.max(axis=0)
    back_mean = np.add.reduceat(back * target_mass, starts) / np.add.reduceat(target_mass, starts)
    parts = (
        mass @ best / mass.sum(),
        ordered[0],
        ordered[:3].mean(0),
        ordered[:third].mean(0),
        back_mean,
        _best_thirds(back, starts),
    )
    return np.stack(parts, axis=1)


def _best_thirds(values: Float32Array, starts: Int64Array) -> Float32Array:
    sizes = np.diff(np.append(starts, len(values)))
    segment = np.repeat(np.arange(len(starts)), sizes)
    ordered = values[np.lexsort((-values, segment))]
    thirds = np.maximum(1, sizes // 3)
    inside = np.arange(len(values)) - starts[segment] < thirds[segment]
    sums = np.add.reduceat(np.where(inside, ordered, np.float32(0)), starts)
    return np.asarray(sums / thirds, np.float32)


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
