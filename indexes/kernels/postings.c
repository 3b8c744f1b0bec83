/* The inner loops of BM25: the best rows of each query in the postings of one segment (indexes/text/scoring.py gives the
   formula, and computes the same with numpy if this is not built), and the numbers of the pieces of texts
   (indexes/text/vocabulary.py). */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 11   /* version of the functions' arguments, which __init__.py checks */
#define BLOCK 4096   /* rows whose sums are held at a time, since this many fit into the L1 cache */
#define TABLED 8     /* the factors of smaller counts are in the table */
#if defined(__x86_64__) && defined(__GNUC__)
/* Without AVX-512, after which processors run everything more slowly for a while: it adds a tenth to a single query. */
#define BEST_OF __attribute__((target_clones("avx2", "default")))
#else
#define BEST_OF
#endif

int64_t version(void) { return VERSION; }

/* A segment, as Python writes it, eight bytes per entry: the hashes of its `count` terms, ascending, and where the
   postings of each one start; the rows and counts of all postings; a code per row for its length, padded to whole
   blocks; the number of rows, and the number of the first row. */
typedef struct {
    const uint64_t *terms;
    const int64_t *starts;
    int64_t count;
    const uint32_t *rows;
    const uint16_t *counts, *lengths;
    int64_t documents, first;
} Segment;

/* Put a key at position `at` of a min-heap of k keys, or below, where the heap order requires it. */
static void sink(uint64_t *heap, int64_t k, int64_t at, uint64_t key) {
    for (int64_t child = 2 * at + 1; child < k; child = 2 * at + 1) {
        if (child + 1 < k && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= key) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

/* Return the sum that a row must exceed to be considered: a little less than the least sum in the heap, which was
   rounded to a float. */
static int64_t bar(const uint64_t *heap) {
    const uint32_t bits = heap[0] >> 32;
    float least;
    memcpy(&least, &bits, sizeof least);
    return (int64_t)(least * (1 - 0x1p-22));
}

/* Offer the rows of a block to the heap. The upper half of a key is the sum as a float, whose bits sort as floats do,
   and the lower half the complement of the row: of equal scores the lower row is kept. */
BEST_OF static void collect(const int64_t *sums, int64_t rows, int64_t first, const uint8_t *allowed, int64_t k,
                            uint64_t *heap) {
    int64_t least = bar(heap);
    for (int64_t j = 0; j < rows; j += 64) {
        int64_t most = 0;
        for (int l = 0; l < 64; l++) most = sums[j + l] > most ? sums[j + l] : most;
        if (most <= least) continue;
        for (int64_t row = j; row < j + 64 && row < rows; row++) {
            if (sums[row] <= least || (allowed && !allowed[row])) continue;
            const float sum = (float)sums[row];
            uint32_t bits;
            memcpy(&bits, &sum, sizeof bits);
            const uint64_t key = (uint64_t)bits << 32 | (uint32_t)~(first + row);
            if (key <= heap[0]) continue;
            sink(heap, k, 0, key);
            least = bar(heap);
        }
    }
}

/* For each query, add up the factors of its terms by row of one segment, and keep the k best rows in its heap. */
static void search_one(const Segment *segment, const float *norm, const float *factor, int64_t codes, const uint8_t *allowed,
                       int64_t queries, const int64_t *first_term, int64_t *places, int64_t width, const float *weight,
                       int64_t k, uint64_t *heap) {
    const uint32_t *rows = segment->rows;
    const int64_t documents = segment->documents;
    int64_t sums[BLOCK];
    for (int64_t q = 0; q < queries; q++, heap += k) {
        const int64_t terms = first_term[q + 1] - first_term[q];
        const int64_t *from = places + first_term[q], *end = from + width;
        int64_t *at = places + 2 * width + first_term[q];
        memcpy(at, from, sizeof(*at) * terms);
        for (;;) {
            uint32_t next = UINT32_MAX;
            for (int64_t t = 0; t < terms; t++)
                if (at[t] < end[t] && rows[at[t]] < next) next = rows[at[t]];
            if (next >= documents) break;
            const int64_t base = next / BLOCK * BLOCK, limit = base + BLOCK;
            const uint16_t *length = segment->lengths + base;
            memset(sums, 0, sizeof sums);
            for (int64_t t = 0; t < terms; t++) {
                const float w = weight[first_term[q] + t];
                int64_t p = at[t];
                for (; p < end[t] && rows[p] < limit; p++) {
                    const uint32_t row = rows[p] & (BLOCK - 1); /* stays within `sums` even if the file is damaged */
                    const uint16_t n = segment->counts[p];
                    const float f = n < TABLED ? factor[n * codes + length[row]] : n / (n + norm[length[row]]);
                    sums[row] += (int64_t)(w * f) + 1;
                }
                at[t] = p;
            }
            collect(sums, documents - base < BLOCK ? documents - base : BLOCK, segment->first + base,
                    allowed ? allowed + base : 0, k, heap);
        }
    }
}

/* Search each of n segments like search_one. norm [codes] and factor [TABLED][codes]: by the code of a length; allowed:
   one byte per row of all segments, or NULL. Query q has the terms first_term[q] to first_term[q + 1] - 1, each with a
   weight; places [n][3][width]: where a term's postings in a segment begin and end, and working space for how far they
   have been read. */
void search(int64_t n, const Segment *segments, const float *norm, const float *factor, int64_t codes,
            const uint8_t *allowed, int64_t queries, const int64_t *first_term, int64_t *places, int64_t width,
            const float *weight, int64_t k, uint64_t *heap) {
    for (int64_t s = 0; s < n; s++, places += 3 * width)
        search_one(segments + s, norm, factor, codes, allowed ? allowed + segments[s].first : 0, queries, first_term, places,
                   width, weight, k, heap);
}

/* Write where the postings of each of `width` hashes' terms begin and end (equal if it has none) in each of n segments, to
   places [n][3][width]. */
void find(int64_t n, const Segment *segments, const uint64_t *hashes, int64_t width, int64_t *places) {
    for (const Segment *segment = segments; segment < segments + n; segment++, places += 3 * width)
        for (int64_t t = 0; t < width; t++) {
            int64_t low = 0, high = segment->count;
            while (low < high) {
                const int64_t middle = low + (high - low) / 2;
                if (segment->terms[middle] < hashes[t])
                    low = middle + 1;
                else
                    high = middle;
            }
            const int there = low < segment->count && segment->terms[low] == hashes[t];
            places[t] = there ? segment->starts[low] : 0;
            places[width + t] = there ? segment->starts[low + 1] : 0;
        }
}

/* Return the weight of a term that occurs `count` times in a query and in `frequency` of `documents` rows. */
static double weight_of(double count, double k3, double k1, int64_t frequency, int64_t documents) {
    const double repeated = isinf(k3) ? count : (k3 + 1) * count / (k3 + count);
    return frequency ? repeated * (k1 + 1) * log1p((documents - frequency + 0.5) / (frequency + 0.5)) : 0;
}

/* Find the terms of queries in n segments (see `find`), and write the weight of each term, scaled to integers, and each
   query's scale: a power of two, so that the weights of a query add up to at most 2^52. counts: of each term in its
   query; k: k1, k3 and the length up to which a query is short. */
void ask(int64_t n, const Segment *segments, int64_t documents, const double *k, int64_t queries,
         const int64_t *first_term, const uint64_t *hashes, const int64_t *counts, int64_t *places, float *weights,
         double *scales) {
    const int64_t width = first_term[queries];
    find(n, segments, hashes, width, places);
    for (int64_t q = 0; q < queries; q++) {
        int64_t length = 0;
        for (int64_t t = first_term[q]; t < first_term[q + 1]; t++) length += counts[t];
        const double k3 = k[1] * fmax(length / k[2], 1);
        double total = 0;
        for (int64_t t = first_term[q]; t < first_term[q + 1]; t++) {
            int64_t frequency = 0;
            for (const int64_t *place = places + t; place < places + 3 * width * n; place += 3 * width)
                frequency += place[width] - place[0];
            /* the working space of the first segment holds the frequency until the search */
            places[2 * width + t] = frequency;
            total += weight_of(counts[t], k3, k[0], frequency, documents);
        }
        int exponent;
        frexp(0x1p52 / fmax(total, 1e-30), &exponent);
        scales[q] = ldexp(1, exponent - 1);
        for (int64_t t = first_term[q]; t < first_term[q + 1]; t++)
            weights[t] = (float)(weight_of(counts[t], k3, k[0], places[2 * width + t], documents) * scales[q]);
    }
}

/* Sort n times k keys, and write their rows and scores, best first; a key of 0 is row -1, score -inf. */
void decode(int64_t n, int64_t k, uint64_t *heap, const double *scales, int64_t *rows, float *scores) {
    for (int64_t q = 0; q < n; q++, heap += k, rows += k, scores += k) {
        for (int64_t at = k / 2 - 1; at >= 0; at--) sink(heap, k, at, heap[at]); /* if it is not a heap yet */
        for (int64_t end = k - 1; end > 0; end--) {
            const uint64_t last = heap[end];
            heap[end] = heap[0];
            sink(heap, end, 0, last);
        }
        for (int64_t i = 0; i < k; i++) {
            const uint32_t bits = heap[i] >> 32;
            float sum;
            memcpy(&sum, &bits, sizeof sum);
            rows[i] = heap[i] ? (int64_t)(uint32_t)~heap[i] : -1;
            scores[i] = heap[i] ? (float)(sum / scales[q]) : -INFINITY;
        }
    }
}

/* What scores depend on, apart from the queries, as Python writes it, eight bytes per entry: n segments, and the number of
   rows in all of them; the tables of `search`; the parameters k of `ask`. */
typedef struct {
    int64_t n;
    const Segment *segments;
    int64_t documents;
    const float *norm, *factor;
    int64_t codes;
    double k[3];
} Scoring;

/* Write the rows and scores [queries][k] of the best rows of each query, as `ask`, `search` and `decode` find them. asked:
   each query's first term, then how many there are; the hashes of all terms; their counts. Return 0, or -1 if there is not
   enough memory. */
int best(const Scoring *s, const uint8_t *allowed, int64_t queries, const int64_t *asked, int64_t k, int64_t *rows,
         float *scores) {
    const int64_t width = asked[queries], size = 3 * s->n * width;
    const int64_t *hashes = asked + queries + 1;
    int64_t *places = malloc(sizeof(int64_t) * (size + queries * (k + 1)) + sizeof(float) * width);
    if (!places) return -1;
    uint64_t *heap = (uint64_t *)(places + size);
    double *scales = (double *)(heap + queries * k);
    float *weights = (float *)(scales + queries);
    memset(heap, 0, sizeof(*heap) * queries * k);
    ask(s->n, s->segments, s->documents, s->k, queries, asked, (const uint64_t *)hashes, hashes + width, places, weights,
        scales);
    search(s->n, s->segments, s->norm, s->factor, s->codes, allowed, queries, asked, places, width, weights, k, heap);
    decode(queries, k, heap, scales, rows, scores);
    free(places);
    return 0;
}

/* Count the terms of documents, whose tokens follow one another as numbers below n: write where the postings of each term
   start [n + 1], and the row and count of each posting, for which there is as much room as there are tokens. working [n]:
   space. Return the number of postings. */
int64_t count(int64_t documents, const int64_t *lengths, const uint32_t *tokens, int64_t n, int64_t *working,
              int64_t *starts, uint32_t *rows, uint16_t *counts) {
    memset(starts, 0, sizeof(*starts) * (n + 1));
    for (int64_t t = 0; t < n; t++) working[t] = -1; /* the last row with the term */
    const uint32_t *token = tokens;
    for (int64_t row = 0; row < documents; row++)
        for (const uint32_t *end = token + lengths[row]; token < end; token++)
            if (working[*token] != row) {
                working[*token] = row;
                starts[*token + 1]++;
            }
    for (int64_t t = 0; t < n; t++) starts[t + 1] += starts[t];
    memcpy(working, starts, sizeof(*starts) * n); /* where the next posting of the term is written */
    token = tokens;
    for (int64_t row = 0; row < documents; row++)
        for (const uint32_t *end = token + lengths[row]; token < end; token++) {
            const int64_t at = working[*token];
            if (at > starts[*token] && rows[at - 1] == row) {
                counts[at - 1] += counts[at - 1] < UINT16_MAX;
            } else {
                rows[at] = (uint32_t)row;
                counts[at] = 1;
                working[*token]++;
            }
        }
    return starts[n];
}

/* Copy the postings of each of n terms of a segment, with rows shifted, to where the merged segment has room for the
   term `numbers[t]`: free[numbers[t]], which then moves behind them. */
void copy(int64_t n, const int64_t *numbers, const int64_t *starts, const uint32_t *rows, const uint16_t *counts,
          int64_t shift, int64_t *free, uint32_t *to_rows, uint16_t *to_counts) {
    for (int64_t t = 0; t < n; t++) {
        const int64_t begin = starts[t], size = starts[t + 1] - begin, at = free[numbers[t]];
        for (int64_t i = 0; i < size; i++) to_rows[at + i] = rows[begin + i] + (uint32_t)shift;
        memcpy(to_counts + at, counts + begin, sizeof(*counts) * size);
        free[numbers[t]] += size;
    }
}

/* Return the first place from `begin` to `end` whose row is not below `row`, or `end`. */
static int64_t place_of(const uint32_t *rows, int64_t begin, int64_t end, int64_t row) {
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        if (rows[middle] < row)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Search by BM25F (indexes/text/field_scoring.py) over consecutive rows that lie in one segment of each field.

   rows, counts, lengths, factor: of each field's segment, the factor of a count by the code of the row's length; shift:
   the number of the first row within each segment; documents: how many rows; first: the number of the first one;
   places [fields][3][width]; the rest as in `search`. Rows outside the range, which only a damaged file has there, are
   skipped. */
void search_fields(int64_t fields, const uint32_t *const *rows, const uint16_t *const *counts,
                   const uint16_t *const *lengths, const float *const *factor, const int64_t *shift, const float *k1,
                   int64_t documents, int64_t first, const uint8_t *allowed, int64_t queries, const int64_t *first_term,
                   int64_t *places, int64_t width, const float *weight, int64_t k, uint64_t *heap) {
    int64_t sums[BLOCK];
    float frequency[BLOCK]; /* the frequency of a term, summed over the fields */
    memset(frequency, 0, sizeof frequency);
    for (int64_t q = 0; q < queries; q++, heap += k) {
        for (int64_t t = first_term[q]; t < first_term[q + 1]; t++)
            for (int64_t f = 0; f < fields; f++) {
                int64_t *place = places + 3 * f * width + t;
                place[2 * width] = place_of(rows[f], place[0], place[width], shift[f]);
            }
        for (;;) {
            int64_t next = documents;
            for (int64_t t = first_term[q]; t < first_term[q + 1]; t++)
                for (int64_t f = 0; f < fields; f++) {
                    const int64_t *place = places + 3 * f * width + t;
                    if (place[2 * width] >= place[width]) continue;
                    const int64_t row = (int64_t)rows[f][place[2 * width]] - shift[f];
                    if (row < next) next = row;
                }
            if (next >= documents) break;
            const int64_t base = next < 0 ? 0 : next / BLOCK * BLOCK;
            const int64_t span = documents - base < BLOCK ? documents - base : BLOCK;
            memset(sums, 0, sizeof sums);
            for (int64_t t = first_term[q]; t < first_term[q + 1]; t++) {
                const float w = weight[t];
                for (int64_t f = 0; f < fields; f++) {
                    const int64_t *place = places + 3 * f * width + t, start = shift[f] + base;
                    const uint16_t *length = lengths[f] + start;
                    for (int64_t p = place[2 * width]; p < place[width] && rows[f][p] < start + BLOCK; p++) {
                        const uint64_t row = (uint64_t)((int64_t)rows[f][p] - start);
                        if (row < (uint64_t)span) frequency[row] += counts[f][p] * factor[f][length[row]];
                    }
                }
                for (int64_t f = 0; f < fields; f++) {
                    int64_t *place = places + 3 * f * width + t, p = place[2 * width];
                    const int64_t start = shift[f] + base;
                    for (; p < place[width] && rows[f][p] < start + BLOCK; p++) {
                        const uint64_t row = (uint64_t)((int64_t)rows[f][p] - start);
                        if (row >= (uint64_t)span || frequency[row] == 0) continue;
                        sums[row] += (int64_t)(w * (frequency[row] / (*k1 + frequency[row]))) + 1;
                        frequency[row] = 0; /* the other fields' postings of this row have been counted */
                    }
                    place[2 * width] = p;
                }
            }
            collect(sums, span, first + base, allowed ? allowed + base : 0, k, heap);
        }
    }
}

static uint64_t eight(const uint8_t *bytes) {
    uint64_t part;
    memcpy(&part, bytes, sizeof part);
    return part;
}

/* Return a number for the last 1 to 8 bytes of a piece, which differs from those of all others of this size; a copy whose
   size is not constant would be a call. */
static uint64_t last_of(const uint8_t *bytes, int64_t size) {
    uint32_t low, high;
    if (size == 8) return eight(bytes);
    if (size < 4) return (uint64_t)bytes[0] << 16 | (uint64_t)bytes[size / 2] << 8 | bytes[size - 1];
    memcpy(&low, bytes, sizeof low);
    memcpy(&high, bytes + size - 4, sizeof high);
    return (uint64_t)high << 32 | low;
}

/* Hash the bytes of a piece to 64 bits, never 0: eight bytes at a time, by a 128-bit product folded in two. The seed is
   secret, so that nobody can write texts whose words collide. */
static uint64_t mixed(const uint8_t *piece, int64_t bytes, uint64_t seed) {
    uint64_t state = seed;
    for (int64_t left = bytes; left > 0; left -= 8, piece += 8) {
        const uint64_t part = left > 8 ? eight(piece) : last_of(piece, left);
        const unsigned __int128 product = (unsigned __int128)(state ^ part ^ 0xd6e8feb86659fd93) * 0xa0761d6478bd642f;
        state = (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    state ^= seed ^ (uint64_t)bytes;
    const unsigned __int128 product = (unsigned __int128)(state ^ 0xe7037ed1a0b428db) * 0x8ebc6af09c88c6e3;
    return ((uint64_t)product ^ (uint64_t)(product >> 64)) | 1;
}

/* Return the slot of a hash in a table of `slots` slots, a power of two: the one that has it, or else a free one. */
static uint64_t slot_of(const uint64_t *hashes, int64_t slots, uint64_t hash) {
    uint64_t slot = hash >> 8 & (slots - 1);
    while (hashes[slot] && hashes[slot] != hash) slot = (slot + 1) & (slots - 1);
    return slot;
}

static int digit(uint8_t c) { return c >= '0' && c <= '9'; }

static int letter(uint8_t c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }

/* Return the length in bytes of the separator at a place of a UTF-8 text, or 0 if a piece begins or continues there.
   Separators are ASCII characters other than letters and digits, U+2000 to U+206F, and the no-break space; pieces
   between other separators are analysed as one. A point or comma between digits is not a separator; in posts, only ASCII
   spaces and control characters are separators (indexes/text/analysis.py). */
static int64_t separator(const uint8_t *start, int64_t at, int64_t bytes, int64_t posts) {
    const uint8_t *text = start + at, c = *text;
    const int64_t left = bytes - at;
    if (posts) return c <= ' ' || c == 127;
    if ((c == '.' || c == ',') && at > 0 && left > 1 && digit(text[-1]) && digit(text[1])) return 0;
    if (c < 128) return !(digit(c) || letter(c));
    if (c == 0xe2 && left > 2 && (text[1] == 0x80 || (text[1] == 0x81 && text[2] <= 0xaf))) return 3;
    return c == 0xc2 && left > 1 && text[1] == 0xa0 ? 2 : 0;
}

/* Move `begin` to the next piece, or to the byte 255 if the text ends before one, and return the end of either. */
static int64_t next_piece(const uint8_t *text, int64_t *begin, int64_t bytes, int64_t posts) {
    for (int64_t skip; text[*begin] != 255 && (skip = separator(text, *begin, bytes, posts)); *begin += skip) {}
    int64_t end = *begin + 1;
    if (text[*begin] != 255)
        while (letter(text[end]) || (text[end] != 255 && !separator(text, end, bytes, posts))) end++;
    return end;
}

/* Look up the pieces of texts, each of which ends with a byte 255, in a table [slots, a power of two] of hashes and
   numbers; return how many pieces there are, at most one per two bytes. posts: whether texts are split as posts are;
   found: the number of each piece; ends: how many pieces there are up to the end of each text; unknown: position, hash,
   begin and end of each piece that is not in the table; unknowns: how many there are. */
int64_t number(const uint8_t *text, int64_t bytes, int64_t posts, const uint64_t *hashes, const int32_t *numbers, int64_t slots,
               int64_t seed, int32_t *found, int64_t *ends, int64_t *unknown, int64_t *unknowns) {
    int64_t pieces = 0, listed = 0;
    for (int64_t begin = 0, end; begin < bytes; begin = end) {
        end = next_piece(text, &begin, bytes, posts);
        if (text[begin] == 255) {
            *ends++ = pieces;
            continue;
        }
        const uint64_t hash = mixed(text + begin, end - begin, (uint64_t)seed), slot = slot_of(hashes, slots, hash);
        found[pieces] = numbers[slot];
        if (!hashes[slot]) {
            const int64_t entry[4] = {pieces, (int64_t)hash, begin, end};
            memcpy(unknown + 4 * listed++, entry, sizeof entry);
        }
        pieces++;
    }
    *unknowns = listed;
    return pieces;
}

/* Enter hashes and their numbers into a table that has room for them; entries that are there already stay. */
void enter(const uint64_t *new_hashes, const int32_t *new_numbers, int64_t count, uint64_t *hashes, int32_t *numbers,
           int64_t slots) {
    for (int64_t i = 0; i < count; i++) {
        if (!new_hashes[i]) continue;
        const uint64_t slot = slot_of(hashes, slots, new_hashes[i]);
        if (hashes[slot]) continue;
        hashes[slot] = new_hashes[i];
        numbers[slot] = new_numbers[i];
    }
}

/* The terms of the pieces of queries, as Python writes them, eight bytes per entry: the hashes of pieces [slots, a power of
   two] and, for each, where its terms' hashes begin and end; room for `most` pieces and `most` terms; the seed of the hashes;
   whether texts are split as posts are; how many pieces and terms there are. */
typedef struct {
    uint64_t *hashes;
    int32_t *spans;
    uint64_t *terms;
    int64_t slots, most, seed, posts, pieces, held;
} Memory;

/* Enter n pieces, each with its hash and the number of its terms, if there is room for all; return whether there is. */
int remember(Memory *memory, int64_t n, const int64_t *hashes, const int64_t *sizes, const uint64_t *terms, int64_t held) {
    if (memory->pieces + n > memory->most || memory->held + held > memory->most) return 0;
    for (int64_t i = 0; i < n; terms += sizes[i++]) {
        const uint64_t slot = slot_of(memory->hashes, memory->slots, (uint64_t)hashes[i]);
        if (memory->hashes[slot]) continue;
        memory->hashes[slot] = (uint64_t)hashes[i];
        memory->spans[2 * slot] = (int32_t)memory->held;
        memcpy(memory->terms + memory->held, terms, sizeof(*terms) * sizes[i]);
        memory->spans[2 * slot + 1] = (int32_t)(memory->held += sizes[i]);
        memory->pieces++;
    }
    return 1;
}

/* Write the distinct terms of queries, each of which ends with a byte 255, in order of appearance, as `best` takes them. A
   piece has no more terms than bytes, so there is room for `bytes` terms; behind them, asked has room for as many counts. If
   there are pieces without an entry, write the hash, begin and end of each to asked instead, and return how many there are;
   otherwise return minus the number of queries without a term, or -queries - 1 if there is not enough memory. */
int64_t terms_of(const Memory *memory, const uint8_t *text, int64_t bytes, int64_t queries, int64_t *asked) {
    int64_t room = 2, total = 0, unknown = 0, empty = 0, begin = 0;
    while (room < 2 * bytes) room *= 2;
    int32_t few[1024], *seen = room <= 1024 ? few : malloc(sizeof(*seen) * room);
    if (!seen) return -queries - 1;
    int64_t *hashes = asked + queries + 1, *counts = hashes + bytes;
    for (int64_t q = 0; q < queries; q++) {
        const int64_t first = total, last = (const uint8_t *)memchr(text + begin, 255, bytes - begin) - text;
        for (room = 2; room < 2 * (last - begin); room *= 2) {}
        memset(seen, 0, sizeof(*seen) * room);
        for (int64_t end; end = next_piece(text, &begin, bytes, memory->posts), begin < last; begin = end) {
            const uint64_t hash = mixed(text + begin, end - begin, (uint64_t)memory->seed);
            const uint64_t slot = slot_of(memory->hashes, memory->slots, hash);
            if (!memory->hashes[slot]) {
                const int64_t entry[3] = {(int64_t)hash, begin, end};
                memcpy(hashes + 3 * unknown++, entry, sizeof entry);
            }
            for (int32_t i = memory->spans[2 * slot]; !unknown && i < memory->spans[2 * slot + 1]; i++) {
                const int64_t term = (int64_t)memory->terms[i];
                const uint64_t key = mixed((const uint8_t *)&term, sizeof term, (uint64_t)memory->seed);
                uint64_t place = key >> 8 & (room - 1);
                while (seen[place] && hashes[first + seen[place] - 1] != term) place = (place + 1) & (room - 1);
                if (!seen[place]) {
                    hashes[total] = term;
                    counts[total] = 0;
                    seen[place] = (int32_t)(++total - first);
                }
                counts[first + seen[place] - 1]++;
            }
        }
        begin = last + 1;
        asked[q] = first;
        empty += total == first;
    }
    asked[queries] = total;
    if (!unknown) memmove(hashes + total, counts, sizeof(*counts) * total);
    if (seen != few) free(seen);
    return unknown ? unknown : -empty;
}
