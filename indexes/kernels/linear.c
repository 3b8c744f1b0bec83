/* Adds up a linear model over BM25 rows in the postings of one segment (indexes/text/linear.py gives the formula, and
   computes the same with numpy if this is not built). */

#include <stdint.h>

#define VERSION 2  /* version of the functions' arguments, which __init__.py checks */
#define TABLED 8   /* the factors of smaller counts are in the table, as in postings.c */

int64_t version(void) { return VERSION; }

/* For each term, add its weight times its factor in a row, or the square of that, to the row's sum.

   rows, counts: of all postings; lengths: one code per row, below `codes`; norm [codes] and factor [TABLED][codes]: by
   length; begin, end: the places of each term's postings; sums [documents]: by row. Rows beyond `documents`, which only
   a damaged file has, are left out. */
void add(const uint32_t *rows, const uint16_t *counts, const uint16_t *lengths, int64_t documents,
         const float *norm, const float *factor, int64_t codes, int64_t terms, const int64_t *begin, const int64_t *end,
         const float *weight, int64_t squared, float *sums) {
    for (int64_t t = 0; t < terms; t++) {
        const float w = weight[t];
        for (int64_t p = begin[t]; p < end[t]; p++) {
            const uint32_t row = rows[p];
            if (row >= documents) continue;
            const uint16_t n = counts[p];
            const float f = n < TABLED ? factor[n * codes + lengths[row]] : n / (n + norm[lengths[row]]);
            const float value = w * f;
            sums[row] += squared ? value * value : value;
        }
    }
}
