"""One sweep of collapsed Gibbs sampling over tokens: compiled (sampling.c) or, far slower, by numpy."""

import numpy as np

from indexes import kernels
from indexes.dtypes import Float64Array, Int32Array


def sweep(
    pages: Int32Array,
    words: Int32Array,
    topics: Int32Array,
    by_page: Float64Array,
    by_word: Float64Array,
    totals: Float64Array,
    priors: tuple[float, float],
    uniform: Float64Array,
) -> None:
    """Redraw the topic of each of t tokens and update the counts.

    `uniform`: random numbers from [0, 1), float64 [t]; `pages`, `words` and `topics`: int32 [t]; `by_page` [n, k],
    `by_word` [v, k] and `totals` [k]: numbers of tokens of each topic per page, per word and in total, float64;
    `priors`: α of topics and β of words.
    """
    alpha, beta = priors
    smoothing, sums = beta * len(by_word), np.empty(len(totals))
    library = kernels.load("sampling")
    if library is not None:
        kernels.call(
            library.sweep, len(topics), len(sums), pages, words, topics, uniform,
            np.array([alpha, beta, smoothing]), by_page, by_word, totals, sums,
        )  # fmt: skip
        return
    for token, (d, w, old) in enumerate(zip(pages, words, topics, strict=True)):
        for counts in (by_page[d], by_word[w], totals):
            counts[old] -= 1
        np.cumsum((by_page[d] + alpha) * (by_word[w] + beta) / (totals + smoothing), out=sums)
        new = min(int(np.searchsorted(sums, uniform[token] * sums[-1], "right")), len(sums) - 1)
        topics[token] = new
        for counts in (by_page[d], by_word[w], totals):
            counts[new] += 1
