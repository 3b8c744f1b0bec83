/* One sweep of Gibbs sampling (indexes/kernels/sampling.py does the same with numpy if this is not built; the model is
   in linker/crosslingual/scoring/topics.py). */

#include <stdint.h>

#define VERSION 1  /* version of the functions' arguments, which __init__.py checks */

int64_t version(void) { return VERSION; }

/* Redraw the topic of each token, given the topics of all others.

   pages, words: of each token; topics: of each token, replaced; uniform: one number in [0, 1) per token; alpha, beta,
   mass = beta times the size of the vocabulary; by_page [pages][size], by_word [words][size], totals [size]: how many
   tokens have each topic; sums [size]: for the cumulative weights. Counts are doubles, which are exact far beyond any
   corpus. */
void sweep(int64_t tokens, int64_t size, const int32_t *pages, const int32_t *words, int32_t *topics,
           const double *uniform, const double *priors, double *by_page, double *by_word, double *totals,
           double *sums) {
    const double alpha = priors[0], beta = priors[1], mass = priors[2];
    for (int64_t t = 0; t < tokens; t++) {
        double *page = by_page + (int64_t)pages[t] * size, *word = by_word + (int64_t)words[t] * size;
        const int32_t old = topics[t];
        page[old]--, word[old]--, totals[old]--;
        double sum = 0;
        for (int64_t k = 0; k < size; k++) {
            sum += (page[k] + alpha) * (word[k] + beta) / (totals[k] + mass);
            sums[k] = sum;
        }
        const double mark = uniform[t] * sum;
        int32_t new = 0;
        while (new < size - 1 && sums[new] <= mark) new++;
        topics[t] = new;
        page[new]++, word[new]++, totals[new]++;
    }
}
