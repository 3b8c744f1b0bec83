"""Polylingual topics (Mimno et al. 2009): linked pages share a mixture of topics; word distributions are per language.

Fitted by zero-order collapsed variational updates (Asuncion et al. 2009), the expectation of the collapsed Gibbs step
P(z=k) ∝ (n_dk + α)(n_kw + β)/(n_k + Vβ) for all page–word pairs at once; deterministic.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from indexes.dtypes import Float64Array
from indexes.kernels.sampling import sweep

ALPHA_SUM = 50.0  # sum of the prior over the topics of a page
BETA = 0.01  # prior of each word in a topic
BLOCK = 1 << 22  # numbers per block of (page, word) × topic
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class PolylingualTopics:
    """Word probabilities of k topics: `words[l]` float64 [v_l, k] with columns that sum to one; `alpha` per topic."""

    words: tuple[Float64Array, ...]
    alpha: float

    @property
    def size(self) -> int:
        """Number of topics."""
        return int(self.words[0].shape[1])

    def fold_in(self, counts: sp.csr_array, language: int, rounds: int = 20) -> Float64Array:
        """Return the topic mixtures of pages with `counts` [n, v_l], float64 [n, k]; the prior for an empty page."""
        phi, counts = self.words[language], counts.tocsr()
        out = np.empty((counts.shape[0], self.size))
        step = max(1, BLOCK // (self.size * max(1, int(np.diff(counts.indptr).max(initial=1)))))
        for start in range(0, counts.shape[0], step):
            part = counts[start : start + step].tocoo()
            likelihood = phi[part.col]
            mass = np.zeros((min(step, counts.shape[0] - start), self.size))
            for _ in range(rounds):
                weight = likelihood * (mass[part.row] + self.alpha)
                weight *= (part.data / np.maximum(weight.sum(1), 1e-300))[:, None]
                mass = _by_page(weight, part.row, mass.shape[0])
            theta = mass + self.alpha
            out[start : start + step] = theta / theta.sum(1, keepdims=True)
        return out


def fit_topics(
    pages: tuple[sp.csr_array, ...], size: int, *, alpha_sum: float = ALPHA_SUM, rounds: int = 40
) -> PolylingualTopics:
    """Return `size` topics learned from linked pages.

    `pages[l]` holds the counts of the terms of language l (CSR, [n, v_l]); row i is the same page in every language.
    """
    rng = np.random.default_rng(0)
    alpha = alpha_sum / size
    cells = [p.tocoo() for p in pages]
    n = pages[0].shape[0]
    # The languages of a page share its initial mixture, so that they agree on topics from the first round.
    theta = rng.dirichlet(np.full(size, 0.1), n) + alpha / size
    words = [rng.random((p.shape[1], size)) + 1.0 for p in pages]
    words = [w / w.sum(0) for w in words]
    for _ in range(rounds):
        mass = np.zeros((n, size))
        updated = []
        for cell, phi in zip(cells, words, strict=True):
            topic_words, page_mass = _expect(cell, theta, phi, n)
            mass += page_mass
            updated.append((topic_words + BETA) / (topic_words.sum(0) + BETA * phi.shape[0]))
        words, theta = updated, mass + alpha
    return PolylingualTopics(tuple(words), alpha)


def _expect(
    cell: sp.coo_array, theta: Float64Array, phi: Float64Array, n: int
) -> tuple[Float64Array, Float64Array]:
    by_word, by_page = np.zeros_like(phi), np.zeros((n, phi.shape[1]))
    step = max(1, BLOCK // phi.shape[1])
    for start in range(0, cell.nnz, step):
        row, col, data = (x[start : start + step] for x in (cell.row, cell.col, cell.data))
        weight = theta[row] * phi[col]
        weight *= (data / np.maximum(weight.sum(1), 1e-300))[:, None]
        by_word += _by_page(weight, col, phi.shape[0])
        by_page += _by_page(weight, row, n)
    return by_word, by_page


def _by_page(weight: Float64Array, row: npt.NDArray[np.integer], n: int) -> Float64Array:
    sums = sp.csr_array((np.ones(len(row)), (row, np.arange(len(row)))), shape=(n, len(row)))
    return np.asarray(sums @ weight)


def jensen_shannon(p: Float64Array, q: Float64Array) -> Float64Array:
    """Return the Jensen–Shannon divergence, in nats, of distributions [..., k]: [...]; `p` and `q` broadcast."""
    middle = (p + q) / 2
    return 0.5 * (_divergence(p, middle) + _divergence(q, middle))


def _divergence(p: Float64Array, q: Float64Array) -> Float64Array:
    return np.asarray(
        np.sum(np.where(p > 0, p * np.log(np.maximum(p, 1e-300) / np.maximum(q, 1e-300)), 0.0), axis=-1)
    )


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
        """Redraw each token's topic and update the counts; `uniform`: random numbers from [0, 1), float64 [t].

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
    alpha_sum: float = ALPHA_SUM,
    rounds: int = 200,
    seed: int = 0,
) -> PolylingualTopics:
    """Sample `size` topics from linked pages: `pages[l]` are CSR counts [n, v_l]; rows i of all languages are linked.

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
            tokens.sweep(by_page, alpha, BETA, rng.random(len(tokens.topics)))
            if number >= rounds - kept:
                sums[i] += tokens.probabilities(BETA)
    return PolylingualTopics(tuple(total / kept for total in sums), alpha)
