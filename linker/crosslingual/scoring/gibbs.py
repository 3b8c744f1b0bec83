"""Polylingual topics (Mimno et al. 2009) by collapsed Gibbs sampling (Griffiths & Steyvers, 2004), as in AUT.

A token of language l on page d, of word w, gets topic k with a probability proportional to
(n_dk + α)(n^l_kw + β)/(n^l_k + V_l β). The counts n cover all other tokens; n_dk is over all languages of d.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from indexes.dtypes import Float64Array
from indexes.kernels.sampling import sweep
from linker.crosslingual.scoring.topics import PolylingualTopics

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TopicTokens:
    """The tokens of one language: each token's page and word, int32 [t], and its topic, which `sweep` replaces.

    `by_word` float64 [v, k] and `totals` float64 [k] count the topics of words and of all tokens.
    """

    pages: Ints
    words: Ints
    topics: Ints
    by_word: Float64Array
    totals: Float64Array

    @classmethod
    def drawn(cls, counts: sp.csr_array, by_page: Float64Array, rng: np.random.Generator) -> Self:
        """Return the pages' tokens in random order with random topics, which are added to `by_page` [n, k]."""
        cell, size = counts.tocoo(), by_page.shape[1]
        order = rng.permutation(np.repeat(np.arange(cell.nnz), cell.data.astype(np.int64)))
        pages, words = (np.ascontiguousarray(x[order], np.int32) for x in (cell.row, cell.col))
        topics = rng.integers(size, size=len(order), dtype=np.int32)
        by_word = np.zeros((counts.shape[1], size))
        np.add.at(by_word, (words, topics), 1)
        np.add.at(by_page, (pages, topics), 1)
        return cls(pages, words, topics, by_word, by_word.sum(0))

    def sweep(self, by_page: Float64Array, alpha: float, beta: float, uniform: Float64Array) -> None:
        """Redraw each token's topic, from the random numbers `uniform` float64 [t] in [0, 1); update counts.

        `by_page` float64 [n, k] counts the topics of pages over all languages.
        """
        sweep(self.pages, self.words, self.topics, by_page, self.by_word, self.totals, (alpha, beta), uniform)

    def probabilities(self, beta: float) -> Float64Array:
        """Return the probability of each word in each topic: float64 [v, k], columns sum to one."""
        return np.asarray((self.by_word + beta) / (self.totals + beta * len(self.by_word)))


def sample_topics(
    pages: tuple[sp.csr_array, ...],
    size: int,
    *,
    alpha_sum: float = 50.0,
    beta: float = 0.01,
    rounds: int = 200,
    seed: int = 0,
) -> PolylingualTopics:
    """Return `size` topics sampled from linked pages: `pages[l]` CSR counts [n, v_l], row i of all languages linked.

    Word probabilities are means over the second half of the `rounds` sweeps.
    """
    rng = np.random.default_rng(seed)
    alpha = alpha_sum / size
    by_page = np.zeros((pages[0].shape[0], size))
    languages = [TopicTokens.drawn(counts, by_page, rng) for counts in pages]
    sums = [np.zeros_like(tokens.by_word) for tokens in languages]
    kept = rounds - rounds // 2
    for number in range(rounds):
        for i, tokens in enumerate(languages):
            tokens.sweep(by_page, alpha, beta, rng.random(len(tokens.topics)))
            if number >= rounds - kept:
                sums[i] += tokens.probabilities(beta)
    return PolylingualTopics(tuple(total / kept for total in sums), alpha)
