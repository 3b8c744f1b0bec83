/* Inner loops of products of sparse matrices (indexes/kernels/products.py does the same with scipy if this is not
   built). All matrices are CSR with sorted rows. */

#include <stdint.h>

#define VERSION 1  /* version of the functions' arguments, which __init__.py checks */
#define LANES 8

int64_t version(void) { return VERSION; }

/* For each pair p of a left row i (begin[i] <= p < begin[i + 1]) and the right row others[p], write the product of the
   two rows to out[p]. wide: zeros, one per column of the matrices; zeros again at the end. */
void dots(int64_t rows, const int64_t *begin, const int32_t *others, const int64_t *left_begin,
          const int32_t *left_columns, const float *left, const int64_t *right_begin, const int32_t *right_columns,
          const float *right, float *wide, float *out) {
    for (int64_t i = 0; i < rows; i++) {
        if (begin[i] == begin[i + 1]) continue;
        for (int64_t k = left_begin[i]; k < left_begin[i + 1]; k++) wide[left_columns[k]] = left[k];
        for (int64_t p = begin[i]; p < begin[i + 1]; p++) {
            int64_t k = right_begin[others[p]];
            const int64_t end = right_begin[others[p] + 1];
            double sum[LANES] = {0};  /* several sums, since each addition waits for the one before */
            for (; k + LANES <= end; k += LANES)
                for (int lane = 0; lane < LANES; lane++)
                    sum[lane] += (double)wide[right_columns[k + lane]] * right[k + lane];
            for (; k < end; k++) sum[0] += (double)wide[right_columns[k]] * right[k];
            for (int lane = 1; lane < LANES; lane++) sum[0] += sum[lane];
            out[p] = (float)sum[0];
        }
        for (int64_t k = left_begin[i]; k < left_begin[i + 1]; k++) wide[left_columns[k]] = 0;
    }
}

/* Add the product of the left rows first ... last - 1 and a matrix in posting lists, one list per column of the left
   matrix, to the dense rows of out, each of `width` numbers. */
void add_postings(int64_t first, int64_t last, int64_t width, const int64_t *left_begin, const int32_t *left_columns,
                  const float *left, const int64_t *list_begin, const int32_t *list_rows, const float *list,
                  float *out) {
    for (int64_t i = first; i < last; i++) {
        float *row = out + (i - first) * width;
        for (int64_t k = left_begin[i]; k < left_begin[i + 1]; k++) {
            const float weight = left[k];
            const int64_t end = list_begin[left_columns[k] + 1];
            for (int64_t p = list_begin[left_columns[k]]; p < end; p++) row[list_rows[p]] += weight * list[p];
        }
    }
}
