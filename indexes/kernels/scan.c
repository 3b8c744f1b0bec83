/* The inner loops of the certified scan; indexes/vectors/certified.py explains what they compute and why it is exact.

   Codes are laid out in groups of 16 rows, four dimensions at a time: [group][dimension / 4][row][4]. A code is stored
   as its value + 128, because VPDPBUSD multiplies unsigned by signed bytes. */

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define GROUP 16
#define VERSION 2 /* version of the function signatures, which __init__.py checks */
#define PANEL 64 /* rows compared at a time; a buffer must have room for this many more */
#define WIDTH 6  /* queries compared at a time: with 4 groups of rows, 24 sums fit into the registers */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define BEST_OF __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define BEST_OF
#endif

/* Encode `x` [n][d] as bytes; `error` [n] is the length of each row's rounding error, rounded up.
   Return the length of the longest row. */
BEST_OF double encode(const float *x, int64_t n, int64_t d, int64_t padded, uint8_t *codes, float *scale, float *error) {
    double longest = 0;
    memset(codes, 128, (n + GROUP - 1) / GROUP * GROUP * padded);
    for (int64_t i = 0; i < n; i++, x += d) {
        uint8_t *row = codes + i / GROUP * GROUP * padded + i % GROUP * 4;
        float most[16] = {0};
        double lost[16] = {0}, length[16] = {0};
        for (int64_t j = 0; j < d; j += 16)
            for (int l = 0; l < (d - j < 16 ? d - j : 16); l++)
                most[l] = fabsf(x[j + l]) > most[l] ? fabsf(x[j + l]) : most[l];
        for (int l = 1; l < 16; l++) most[0] = most[l] > most[0] ? most[l] : most[0];
        const float s = most[0] / 127, inverse = s > 1e-30f ? 1 / s : 0;
        for (int64_t j = 0; j < d; j += 16) {
            float part[16] = {0};
            uint8_t code[16];
            memcpy(part, x + j, 4 * (d - j < 16 ? d - j : 16));
            for (int l = 0; l < 16; l++) {
                const float c = rintf(part[l] * inverse);
                const double e = part[l] - (double)s * c;
                code[l] = (uint8_t)((int)c + 128);
                lost[l] += e * e;
                length[l] += (double)part[l] * part[l];
            }
            for (int l = 0; l < 16 && j + l < padded; l += 4) memcpy(row + (j + l) * GROUP, code + l, 4);
        }
        for (int l = 1; l < 16; l++) lost[0] += lost[l], length[0] += length[l];
        scale[i] = s;
        error[i] = (float)fmin(sqrt(lost[0]) * (1 + 1e-6) + 1e-36, FLT_MAX);
        longest = fmax(longest, sqrt(length[0]));
    }
    return longest;
}

/* Return the inner product of two rows of floats, summed as doubles in a fixed order; never −0. */
static inline __attribute__((always_inline)) float product(const float *x, const float *y, int64_t d) {
    double part[16] = {0}, sum = 0;
    int64_t j = 0;
    for (; j + 16 <= d; j += 16)
        for (int l = 0; l < 16; l++) part[l] += (double)x[j + l] * y[j + l];
    for (int l = 0; j < d; j++, l++) part[l] += (double)x[j] * y[j];
    for (int l = 0; l < 16; l++) sum += part[l];
    return (float)sum + 0.0f;
}

/* Write scores [queries][m] of the rows [queries][m] given for each query; −infinity for row −1. */
BEST_OF void scores(const float *vectors, int64_t d, const float *query, int64_t queries, int64_t m,
                    const int64_t *rows, float *out) {
    for (int64_t i = 0; i < queries * m; i++)
        out[i] = rows[i] < 0 ? -INFINITY : product(vectors + rows[i] * d, query + i / m * d, d);
}

/* Write a sort key per candidate, [queries][width]: smaller keys mean higher scores, then lower rows. */
BEST_OF void keys(const float *vectors, int64_t d, const float *query, int64_t queries, int64_t room,
                  const int64_t *count, const int32_t *rows, int64_t width, uint64_t *out) {
    for (int64_t q = 0; q < queries; q++, query += d, rows += room, out += width) {
        for (int64_t i = 0; i < count[q]; i++) {
            const float score = product(vectors + rows[i] * d, query, d);
            uint32_t bits;
            memcpy(&bits, &score, 4);
            bits = bits >> 31 ? bits : ~bits & 0x7fffffff;
            out[i] = (uint64_t)bits << 32 | (uint32_t)rows[i];
            if (i + 2 < count[q])
                for (int64_t j = 0; j < d; j += 16) __builtin_prefetch(vectors + rows[i + 2] * d + j);
        }
        for (int64_t i = count[q]; i < width; i++) out[i] = UINT64_MAX;
    }
}

int version(void) { return VERSION; }

/* Partly sort `a` and return its k-th largest value (Hoare's selection algorithm). */
static float kth_largest(float *a, int64_t n, int64_t k) {
    int64_t low = 0, high = n - 1, want = n - k;
    while (low < high) {
        const float pivot = a[(low + high) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i > j) break;
            const float t = a[i];
            a[i++] = a[j], a[j--] = t;
        }
        if (want <= j) high = j;
        else if (want >= i) low = i;
        else break;
    }
    return a[want];
}

/* Where a query has more than `least` (at least k) candidates, raise its threshold to the score that k of them are
   certain to reach, and drop those that cannot reach it. `spread` is twice the part of the bound that all rows share;
   `scratch` holds `room` values. */
void tighten(int64_t queries, int64_t k, int64_t least, int64_t room, const float *spread, float *threshold, int64_t *count,
             int32_t *rows, float *value, float *upper, float *scratch) {
    for (int64_t q = 0; q < queries; q++, rows += room, value += room, upper += room) {
        const int64_t n = count[q];
        int64_t kept = 0;
        if (n <= least) continue;
        for (int64_t i = 0; i < n; i++) scratch[i] = 2 * value[i] - upper[i];
        threshold[q] = fmaxf(threshold[q], kth_largest(scratch, n, k) - spread[q]);
        for (int64_t i = 0; i < n; i++) {
            if (upper[i] < threshold[q]) continue;
            rows[kept] = rows[i], value[kept] = value[i], upper[kept++] = upper[i];
        }
        count[q] = kept;
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

int supported(void) {
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
}

typedef struct {
    const uint8_t *codes;
    const float *scale, *error;
    int64_t padded, base; /* bytes per row; number of the block's first row */
    const int8_t *query;  /* [queries][padded] */
    const int32_t *offset;
    const float *weight, *threshold;
    int64_t room;
    int64_t *count;
    int32_t *rows;
    float *value, *upper;
} Scan;

/* Keep those of 16 rows that may reach the query's threshold; return how many candidates it has now, or 0 if none
   was added. */
static inline VNNI int64_t keep(const Scan *s, int64_t row, int64_t q, __m512i sum) {
    const __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(s->scale + row));
    const __m512 upper = _mm512_fmadd_ps(_mm512_loadu_ps(s->error + row), _mm512_set1_ps(s->weight[q]), value);
    const __mmask16 in = _mm512_cmp_ps_mask(upper, _mm512_set1_ps(s->threshold[q]), _CMP_GE_OQ);
    if (__builtin_expect(in == 0, 1)) return 0;
    const int64_t place = q * s->room + s->count[q];
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i number = _mm512_add_epi32(lane, _mm512_set1_epi32((int32_t)(s->base + row)));
    _mm512_storeu_si512(s->rows + place, _mm512_maskz_compress_epi32(in, number));
    _mm512_storeu_ps(s->value + place, _mm512_maskz_compress_ps(in, value));
    _mm512_storeu_ps(s->upper + place, _mm512_maskz_compress_ps(in, upper));
    return s->count[q] += __builtin_popcount(in);
}

/* Compare a panel with WIDTH queries, or with one. The sums are separate variables, added to in assembler, because
   GCC 12 spills an array of them, and even the sums of the intrinsic, to memory in every step. */
#define ADD(sum, x) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
#define ONE(M) M(0)
#define SIX(M) M(0) M(1) M(2) M(3) M(4) M(5)
#define START(w) __m512i a##w = _mm512_set1_epi32(s->offset[q + w]), b##w = a##w, c##w = a##w, d##w = a##w;
#define STEP(w) \
    y = _mm512_set1_epi32(four[w]); \
    ADD(a##w, x0) ADD(b##w, x1) ADD(c##w, x2) ADD(d##w, x3)
#define MOST(value) most = (n = (value)) > most ? n : most;
#define KEEP(w) \
    MOST(keep(s, row, q + w, a##w)) MOST(keep(s, row + 16, q + w, b##w)) \
    MOST(keep(s, row + 32, q + w, c##w)) MOST(keep(s, row + 48, q + w, d##w))
#define TILE(name, EACH, width) \
    static VNNI int64_t name(const Scan *s, int64_t row, int64_t q) { \
        const uint8_t *x = s->codes + row * s->padded; \
        const int32_t *four = (const int32_t *)(s->query + q * s->padded); \
        const int64_t group = GROUP * s->padded; \
        int64_t most = 0, n; \
        EACH(START) \
        for (int64_t j = 0; j < s->padded; j += 4, x += 64, four += width) { \
            const __m512i x0 = _mm512_loadu_si512(x), x1 = _mm512_loadu_si512(x + group); \
            const __m512i x2 = _mm512_loadu_si512(x + 2 * group), x3 = _mm512_loadu_si512(x + 3 * group); \
            __m512i y; \
            EACH(STEP) \
        } \
        EACH(KEEP) \
        return most; \
    }
TILE(tile_six, SIX, 6)

/* Compare a panel with one query, reading the codes in memory order: memory bandwidth is the limit here. */
static VNNI int64_t tile_one(const Scan *s, int64_t row, int64_t q) {
    const int32_t *four = (const int32_t *)(s->query + q * s->padded);
    int64_t most = 0, n;
    for (int64_t end = row + PANEL; row < end; row += GROUP) {
        const uint8_t *x = s->codes + row * s->padded;
        __m512i sum = _mm512_set1_epi32(s->offset[q]), other = _mm512_setzero_si512(), y;
        int64_t j = 0;
        for (; j + 2 <= s->padded / 4; j += 2, x += 128) {
            y = _mm512_set1_epi32(four[j]);
            ADD(sum, _mm512_loadu_si512(x))
            y = _mm512_set1_epi32(four[j + 1]);
            ADD(other, _mm512_loadu_si512(x + 64))
        }
        if (j < s->padded / 4) {
            y = _mm512_set1_epi32(four[j]);
            ADD(sum, _mm512_loadu_si512(x))
        }
        MOST(keep(s, row, q, _mm512_add_epi32(sum, other)))
    }
    return most;
}

/* Scan rows `start` to `stop` (multiples of 64) of a block; return where the scan stopped: at `stop`, or earlier when
   the buffer of a query has no room for another panel. A row with error −∞ is never a candidate. */
VNNI int64_t scan(const uint8_t *codes, const float *scale, const float *error, int64_t padded, int64_t base,
                  int64_t start, int64_t stop, int64_t queries, const int8_t *query, const int32_t *offset,
                  const float *weight, const float *threshold, int64_t room, int64_t *count, int32_t *rows,
                  float *value, float *upper) {
    const Scan s = {codes, scale, error, padded, base, query, offset, weight, threshold, room, count, rows, value, upper};
    const __m512 never = _mm512_set1_ps(-INFINITY);
    int64_t row = start;
    for (; row < stop; row += PANEL) {
        int64_t most = 0, n, q;
        __mmask16 any = 0;
        for (int g = 0; g < PANEL; g += GROUP)
            any |= _mm512_cmp_ps_mask(_mm512_loadu_ps(error + row + g), never, _CMP_GT_OQ);
        if (!any) continue;
        for (q = 0; q + WIDTH <= queries; q += WIDTH) MOST(tile_six(&s, row, q))
        for (; q < queries; q++) MOST(tile_one(&s, row, q))
        if (most > room - PANEL - GROUP) {
            row += PANEL;
            break;
        }
    }
    return row;
}
#else
int supported(void) { return 0; }
#endif
