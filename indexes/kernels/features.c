/* The features of a query and a candidate for a learned ranker, from the candidate's terms in order and its sentences
   (indexes/text/features.py lists them; plain_features.py computes the same, slowly, if this is not built). */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define VERSION 2         /* version of the functions' arguments, which __init__.py checks */
#define MOST_TERMS 256    /* maximum number of distinct terms of a query, as in features.py, which drops any others */
#define MOST_WORDS 1024   /* maximum number of words of a query */
#define MOST_TOKENS 8192  /* maximum number of tokens of a candidate that are read */
#define SLOTS 1024        /* slots of the hash table of a query's terms */
#define NEAR 10           /* terms at most this many tokens apart are near each other */
#define SMOOTHING 500.0   /* weight of the language model's prior, in tokens */
#define ONE 4294967296.0  /* the weights of a query's terms are whole numbers that add up to about this */
enum { CONTENT = 1, CAPITAL = 2, NUMBER = 4 };
enum { FEATURES = 43 };

int64_t version(void) { return VERSION; }

typedef struct {
    int64_t words, terms;
    const int32_t *word;    /* the term of each word, in order */
    const uint32_t *number; /* the rank of each term among those of the segment; UINT32_MAX: it is not there */
    const int64_t *weight;
    const double *idf, *chance;
    const uint8_t *kind;
    uint32_t key[SLOTS];
    int16_t slot[SLOTS]; /* the term of each key; -1: a free slot */
} Query;

typedef struct {
    int64_t length, read, sentences, hits;
    const uint32_t *token, *start; /* start: the first token of each sentence */
    const float *idf;              /* the idf of each term of the segment */
    double mass;                   /* the sum of the idf of the tokens that were read */
    int32_t tf[MOST_TERMS];
    int32_t at[MOST_TOKENS];        /* position of each hit */
    uint8_t term[MOST_TOKENS];      /* query term of each hit */
    int32_t first[MOST_TOKENS + 1]; /* the first hit of each sentence */
} Candidate;

static uint32_t slot_of(uint32_t number) { return number * 2654435761u >> 22; }

static void enter(Query *query) {
    memset(query->slot, 0xff, sizeof query->slot);
    for (int64_t t = 0; t < query->terms; t++) {
        if (query->number[t] == UINT32_MAX) continue;
        uint32_t at = slot_of(query->number[t]);
        while (query->slot[at] >= 0) at = (at + 1) & (SLOTS - 1);
        query->key[at] = query->number[t];
        query->slot[at] = (int16_t)t;
    }
}

/* Find the query's terms in the candidate, and the first hit of each sentence. */
static void match(const Query *query, Candidate *c) {
    memset(c->tf, 0, sizeof c->tf);
    c->hits = 0;
    c->mass = 0;
    int64_t sentence = -1;
    for (int64_t i = 0; i < c->read; i++) {
        while (sentence + 1 < c->sentences && (sentence < 0 || c->start[sentence + 1] <= i))
            c->first[++sentence] = (int32_t)c->hits;
        const uint32_t number = c->token[i];
        c->mass += c->idf[number];
        uint32_t at = slot_of(number);
        while (query->slot[at] >= 0 && query->key[at] != number) at = (at + 1) & (SLOTS - 1);
        if (query->slot[at] < 0) continue;
        c->at[c->hits] = (int32_t)i;
        c->term[c->hits++] = (uint8_t)query->slot[at];
        c->tf[query->slot[at]]++;
    }
    c->sentences = sentence + 1; /* the number of sentences that were read */
    c->first[c->sentences] = (int32_t)c->hits;
}

static double saturated(double tf, double k1, double b, double relative) {
    return tf > 0 ? tf * (k1 + 1) / (tf + k1 * (1 - b + b * relative)) : 0;
}

/* 24 features of the terms' counts alone. */
static float *counts(const Query *query, const Candidate *c, double average, float *out) {
    double bm25[3] = {0}, share = 0, logs = 0, likelihood = 0, largest = 0, total = 0, highest = 0, content = 0;
    double matched = 0, mass = 0, missing[3] = {0}, covered[2] = {0}, whole[2] = {0}, most = 0;
    const double relative = (double)c->length / average;
    for (int64_t t = 0; t < query->terms; t++) {
        if (!(query->kind[t] & CONTENT)) continue;
        const double idf = query->idf[t], tf = c->tf[t], weight = (double)query->weight[t];
        bm25[0] += idf * saturated(tf, 1.2, .75, relative);
        bm25[1] += idf * saturated(tf, .9, .3, relative);
        bm25[2] += idf * saturated(tf, 2, 1, relative);
        likelihood += log((tf / query->chance[t] + SMOOTHING) / ((double)c->length + SMOOTHING));
        logs += weight * log1p(tf);
        matched += tf;
        mass += idf * tf;
        total += idf;
        content++;
        if (idf > highest) highest = idf;
        for (int k = 0; k < 2; k++) {
            if (!(query->kind[t] & (k ? NUMBER : CAPITAL))) continue;
            whole[k] += weight;
            if (tf > 0) covered[k] += weight;
            else missing[k + 1]++;
        }
        if (tf > 0) {
            share += weight;
            if (weight > most) most = weight;
        } else {
            missing[0]++;
            if (idf > largest) largest = idf;
        }
    }
    const double length = c->read > 0 ? (double)c->read : 1;
    *out++ = (float)bm25[0];
    *out++ = (float)bm25[1];
    *out++ = (float)bm25[2];
    *out++ = (float)(share / ONE);
    *out++ = (float)(logs / ONE);
    *out++ = (float)(content > 0 ? likelihood / content : 0);
    *out++ = (float)(matched / length);
    *out++ = (float)(c->mass > 0 ? mass / c->mass : 0);
    *out++ = (float)missing[0];
    *out++ = (float)(content > 0 ? missing[0] / content : 0);
    *out++ = (float)largest;
    *out++ = (float)missing[1];
    *out++ = (float)missing[2];
    *out++ = (float)(whole[0] > 0 ? covered[0] / whole[0] : -1);
    *out++ = (float)(whole[1] > 0 ? covered[1] / whole[1] : -1);
    *out++ = (float)(most / ONE);
    *out++ = (float)c->length;
    *out++ = (float)c->sentences;
    *out++ = (float)(c->read ? c->mass / length : 0);
    *out++ = (float)query->words;
    *out++ = (float)content;
    *out++ = (float)total;
    *out++ = (float)highest;
    *out++ = (float)(whole[1] / ONE);
    return out;
}

/* Return the greatest weight of distinct terms in any `size` consecutive sentences. */
static int64_t best_of_sentences(const Query *query, const Candidate *c, int64_t size) {
    int32_t inside[MOST_TERMS] = {0};
    int64_t sum = 0, best = 0;
    for (int64_t s = 0; s < c->sentences; s++) {
        for (int32_t h = c->first[s]; h < c->first[s + 1]; h++)
            if (!inside[c->term[h]]++) sum += query->weight[c->term[h]];
        if (s >= size)
            for (int32_t h = c->first[s - size]; h < c->first[s - size + 1]; h++)
                if (!--inside[c->term[h]]) sum -= query->weight[c->term[h]];
        if (sum > best) best = sum;
    }
    return best;
}

/* Return the greatest weight of distinct terms in any `size` consecutive tokens from `from` on, before `end`. */
static int64_t best_of_tokens(const Query *query, const Candidate *c, int64_t size, int64_t from, int64_t end) {
    int32_t inside[MOST_TERMS] = {0};
    int64_t sum = 0, best = 0, tail = 0;
    for (int64_t h = 0; h < c->hits; h++) {
        if (c->at[h] < from) {
            tail = h + 1;
            continue;
        }
        if (c->at[h] >= end) break;
        if (!inside[c->term[h]]++) sum += query->weight[c->term[h]];
        for (; c->at[tail] <= c->at[h] - size; tail++)
            if (!--inside[c->term[tail]]) sum -= query->weight[c->term[tail]];
        if (sum > best) best = sum;
    }
    return best;
}

/* 13 features of sentences and windows. */
static float *windows(const Query *query, const Candidate *c, float *out) {
    int64_t best = 0, second = 0, where = 0, half = 0, third = 0;
    double f = 0;
    for (int64_t s = 0; s < c->sentences; s++) {
        uint8_t inside[MOST_TERMS] = {0};
        int64_t sum = 0;
        double hit = 0, mass = 0;
        for (int32_t h = c->first[s]; h < c->first[s + 1]; h++) {
            const uint8_t term = c->term[h];
            if (!inside[term]) sum += query->weight[term];
            inside[term] = 1;
            if (query->kind[term] & CONTENT) hit += c->idf[c->token[c->at[h]]];
        }
        if (sum > best) {
            second = best;
            best = sum;
            where = s;
        } else if (sum > second) {
            second = sum;
        }
        half += sum > (int64_t)(ONE / 2);
        third += sum > (int64_t)(ONE * .3);
        if (sum > (int64_t)(ONE / 8)) {
            const int64_t end = s + 1 < c->sentences ? c->start[s + 1] : c->read;
            for (int64_t i = s ? c->start[s] : 0; i < end && i < c->read; i++) mass += c->idf[c->token[i]];
            const double recall = (double)sum / ONE, precision = mass > 0 ? hit / mass : 0;
            if (2 * recall * precision > f * (recall + precision)) f = 2 * recall * precision / (recall + precision);
        }
    }
    *out++ = (float)((double)best / ONE);
    *out++ = (float)((double)second / ONE);
    *out++ = (float)((double)best_of_sentences(query, c, 2) / ONE);
    *out++ = (float)((double)best_of_sentences(query, c, 4) / ONE);
    *out++ = (float)((double)best_of_sentences(query, c, 8) / ONE);
    *out++ = (float)((double)best_of_tokens(query, c, 25, 0, c->read) / ONE);
    *out++ = (float)((double)best_of_tokens(query, c, MOST_TOKENS, 0, 150) / ONE);
    *out++ = (float)((double)best_of_tokens(query, c, MOST_TOKENS, c->read - 200, c->read) / ONE);
    *out++ = (float)half;
    *out++ = (float)third;
    *out++ = (float)(c->sentences ? (double)third / (double)c->sentences : 0);
    *out++ = (float)(c->sentences ? (double)where / (double)c->sentences : 0);
    *out++ = (float)f;
    return out;
}

/* 6 features of word order: runs of tokens in both texts, the query's pairs of neighbouring words, nearness. */
static float *phrases(const Query *query, const Candidate *c, float *out) {
    int32_t stamp[MOST_WORDS], run[MOST_WORDS], last[MOST_TERMS], pair[MOST_WORDS], nearest[MOST_WORDS];
    int16_t own[MOST_TERMS], next[MOST_WORDS];             /* lists of the words of a term, last first; -1: end */
    int16_t following[MOST_TERMS], next_after[MOST_WORDS]; /* lists of the words that follow a term */
    int64_t before[MOST_WORDS + 1] = {0}, longest = 0, heaviest = 0, pairs = 0;
    memset(stamp, 0xff, sizeof *stamp * (size_t)query->words);
    for (int64_t t = 0; t < query->terms; t++) {
        last[t] = -2 * MOST_TOKENS;
        own[t] = following[t] = -1;
    }
    for (int64_t j = 0, content = -1; j < query->words; j++) {
        const int32_t term = query->word[j];
        before[j + 1] = before[j] + query->weight[term];
        pair[j] = -1; /* the previous content word; -1: none */
        nearest[j] = 2 * MOST_TOKENS;
        next[j] = own[term];
        own[term] = (int16_t)j;
        if (!(query->kind[term] & CONTENT)) continue;
        if (content >= 0) {
            pair[j] = query->word[content];
            if (pair[j] != term) {
                next_after[j] = following[pair[j]];
                following[pair[j]] = (int16_t)j;
            }
        }
        content = j;
    }
    double together = 0;
    int64_t previous = -1;
    for (int64_t h = 0; h < c->hits; h++) {
        const int32_t at = c->at[h], term = c->term[h], content = query->kind[term] & CONTENT;
        for (int64_t j = own[term]; j >= 0; j = next[j]) {
            run[j] = j && at && stamp[j - 1] == at - 1 ? run[j - 1] + 1 : 1;
            stamp[j] = at;
            if (run[j] > longest) longest = run[j];
            const int64_t weight = before[j + 1] - before[j + 1 - run[j]];
            if (weight > heaviest) heaviest = weight;
            if (pair[j] >= 0 && at - last[pair[j]] < nearest[j]) nearest[j] = at - last[pair[j]];
        }
        if (!content) continue;
        for (int64_t j = following[term]; j >= 0; j = next_after[j])
            if (at - last[query->word[j]] < nearest[j])
                nearest[j] = at - last[query->word[j]] + 1; /* the terms are in the other order, which counts as one
                token more */
        if (previous >= 0 && c->term[previous] != term && at - c->at[previous] <= NEAR) {
            const int64_t a = query->weight[term], b = query->weight[c->term[previous]];
            together += (double)(a < b ? a : b) / (double)(at - c->at[previous]);
        }
        previous = h;
        last[term] = at;
    }
    double all = 0, found = 0, close = 0;
    for (int64_t j = 0; j < query->words; j++) {
        if (pair[j] < 0) continue;
        const double weight = (double)(query->weight[query->word[j]] + query->weight[pair[j]]);
        pairs++;
        all += weight;
        if (nearest[j] <= 2) found += weight;
        if (nearest[j] <= NEAR) close += weight / nearest[j];
    }
    *out++ = (float)longest;
    *out++ = (float)((double)heaviest / ONE);
    *out++ = (float)(all > 0 ? found / all : -1);
    *out++ = (float)(all > 0 ? close / all : -1);
    *out++ = (float)(together / ONE);
    *out++ = (float)(query->words ? (double)longest / (double)query->words : 0);
    return out;
}

/* Write the features of a query and candidates to out [candidates][FEATURES].

   tokens, offsets, sentences, sentence_offsets, idf: arrays of the segment (forward.py); rows: the candidates' rows in
   it; average: tokens per document. word [words]: the term of each word of the query; number, weight, idf_of, chance,
   kind [terms]: values of each of its distinct terms (features.py). */
void describe(const uint32_t *tokens, const int64_t *offsets, const uint32_t *sentences,
              const int64_t *sentence_offsets, const float *idf, const int64_t *rows, int64_t candidates,
              const double *average, const int32_t *word, int64_t words, const uint32_t *number,
              const int64_t *weight, const double *idf_of, const double *chance, const uint8_t *kind, int64_t terms,
              float *out) {
    Query query = {words, terms, word, number, weight, idf_of, chance, kind, {0}, {0}};
    Candidate c;
    enter(&query);
    for (int64_t i = 0; i < candidates; i++) {
        const int64_t row = rows[i];
        c.token = tokens + offsets[row];
        c.length = offsets[row + 1] - offsets[row];
        c.read = c.length < MOST_TOKENS ? c.length : MOST_TOKENS;
        c.start = sentences + sentence_offsets[row];
        c.sentences = sentence_offsets[row + 1] - sentence_offsets[row];
        if (c.sentences > MOST_TOKENS) c.sentences = MOST_TOKENS;
        c.idf = idf;
        match(&query, &c);
        out = phrases(&query, &c, windows(&query, &c, counts(&query, &c, *average, out)));
    }
}

/* The score of each row of x [rows, features]: the values of the leaves it reaches, added in the order of the trees.
   A leaf is its own child on both sides. */
void forest(const float *x, int64_t rows, int64_t features, const int64_t *root, int64_t trees, const int64_t *feature,
            const double *threshold, const int64_t *left, const int64_t *right, const double *value, double *out) {
    memset(out, 0, (size_t)rows * sizeof *out);
    for (int64_t t = 0; t < trees; t++) {
        for (int64_t r = 0; r < rows; r++) {
            const float *row = x + r * features;
            int64_t node = root[t];
            while (left[node] != node) node = row[feature[node]] <= threshold[node] ? left[node] : right[node];
            out[r] += value[node];
        }
    }
}
