"""The features of features.c in plain Python: their definition, and the fallback without compiled code."""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from indexes.dtypes import AnyArray, Float32Array
from indexes.text.features import (
    ABSENT,
    CAPITAL,
    CONTENT,
    MOST_TOKENS,
    NAMES,
    NUMBER,
    OF_QUERY,
    ONE,
    QueryWords,
    Weights,
)  # fmt: skip
from indexes.text.forward import ForwardSegment

NEAR = 10
SMOOTHING = 500.0
Hits = Sequence[tuple[int, int]]  # position of a term in a text, and the term


class QueryMatches:
    """A query and one candidate: `hits` are the positions of the query's terms, with the term at each."""

    def __init__(
        self, tokens: Sequence[int], starts: Sequence[int], idf: AnyArray, query: QueryWords, numbers: AnyArray,
        weights: Weights,
    ) -> None:  # fmt: skip
        self.length, self.tokens = len(tokens), tokens[:MOST_TOKENS]
        self.starts = [s for s in starts if s < len(self.tokens)]
        self.kind, self.word = query.kind.tolist(), query.word.tolist()
        self.weight, self.idf, self.chance = (
            a.tolist() for a in (weights.weight, weights.idf, weights.chance)
        )
        term_of = {n: t for t, n in enumerate(numbers.tolist()) if n != ABSENT}
        self.hits: Hits = [(i, term_of[n]) for i, n in enumerate(self.tokens) if n in term_of]
        self.idf_at = [float(idf[n]) for n in self.tokens]
        self.mass = sum(self.idf_at)

    def weight_of(self, hits: Hits) -> int:
        """Return the total weight of the distinct terms in `hits`."""
        return sum(self.weight[t] for t in {t for _, t in hits})

    def spans(self, size: int = 1) -> Iterator[tuple[int, int]]:
        """Yield the start and end of every run of `size` sentences, with shorter runs at the beginning."""
        edges = [*self.starts, len(self.tokens)]
        for last in range(len(self.starts)):
            yield edges[max(0, last + 1 - size)], edges[last + 1]

    def inside(self, begin: int, end: int) -> Hits:
        """Return the hits from position `begin` up to, but excluding, `end`."""
        return [(i, t) for i, t in self.hits if begin <= i < end]

    def best(self, spans: Iterator[tuple[int, int]]) -> float:
        """Return the largest coverage of any span."""
        return max((self.weight_of(self.inside(a, b)) for a, b in spans), default=0) / ONE


def describe(
    segment: ForwardSegment, idf: Float32Array, rows: Sequence[int] | AnyArray, average: float, query: QueryWords,
    numbers: AnyArray, weights: Weights,
) -> Float32Array:  # fmt: skip
    """Do the same as `describe` in features.c, slowly."""
    out = np.empty((len(rows), len(NAMES)), dtype=np.float32)
    for line, row in zip(out, rows, strict=True):
        tokens = segment.tokens[slice(*segment.offsets[row : row + 2])].tolist()
        starts = segment.sentences[slice(*segment.sentence_offsets[row : row + 2])].tolist()
        candidate = QueryMatches(tokens, starts, idf, query, numbers, weights)
        values = _query(candidate) | _counts(candidate, average) | _windows(candidate) | _phrases(candidate)
        line[:] = [values[name] for name in NAMES]
    return out


def _content(c: QueryMatches) -> list[int]:
    return [t for t, kind in enumerate(c.kind) if kind & CONTENT]


def _query(c: QueryMatches) -> dict[str, float]:
    idf = [c.idf[t] for t in _content(c)]
    numbers = sum(c.weight[t] for t in _content(c) if c.kind[t] & NUMBER) / ONE
    return dict(zip(OF_QUERY, (len(c.word), len(idf), sum(idf), max(idf, default=0), numbers), strict=True))


def _counts(c: QueryMatches, average: float) -> dict[str, float]:
    tf = [0] * len(c.kind)
    for _, term in c.hits:
        tf[term] += 1
    terms, length = _content(c), max(1, len(c.tokens))
    present, missing = [t for t in terms if tf[t]], [t for t in terms if not tf[t]]
    names = [t for t in terms if c.kind[t] & CAPITAL]
    numbers = [t for t in terms if c.kind[t] & NUMBER]

    def bm25(k1: float, b: float) -> float:
        norm = k1 * (1 - b + b * c.length / average)
        return math.fsum(c.idf[t] * tf[t] * (k1 + 1) / (tf[t] + norm) for t in present)

    def covered(part: Sequence[int]) -> float:
        whole = sum(c.weight[t] for t in part)
        return sum(c.weight[t] for t in part if tf[t]) / whole if whole else -1

    likelihood = sum(math.log((tf[t] / c.chance[t] + SMOOTHING) / (c.length + SMOOTHING)) for t in terms)
    return {
        "bm25": bm25(1.2, 0.75),
        "bm25_flat": bm25(0.9, 0.3),
        "bm25_steep": bm25(2, 1),
        "coverage": sum(c.weight[t] for t in present) / ONE,
        "log_coverage": sum(c.weight[t] * math.log1p(tf[t]) for t in terms) / ONE,
        "likelihood": likelihood / len(terms) if terms else 0,
        "density": sum(tf[t] for t in terms) / length,
        "mass_share": sum(c.idf[t] * tf[t] for t in terms) / c.mass if c.mass else 0,
        "missing": len(missing),
        "missing_share": len(missing) / len(terms) if terms else 0,
        "missing_idf": max((c.idf[t] for t in missing), default=0),
        "missing_names": sum(not tf[t] for t in names),
        "missing_numbers": sum(not tf[t] for t in numbers),
        "names": covered(names),
        "numbers": covered(numbers),
        "heaviest_term": max((c.weight[t] for t in present), default=0) / ONE,
        "length": c.length,
        "sentences": len(c.starts),
        "mean_idf": c.mass / length,
    }


def _windows(c: QueryMatches) -> dict[str, float]:
    weights = [c.weight_of(c.inside(a, b)) for a, b in c.spans()]
    best = max(weights, default=0)
    third = sum(w > int(ONE * 0.3) for w in weights)
    length = len(c.tokens)
    return {
        "sentence": best / ONE,
        "second_sentence": (sorted(weights)[-2] if len(weights) > 1 else 0) / ONE,
        **{f"sentences_{n}": c.best(c.spans(n)) for n in (2, 4, 8)},
        "tokens_25": c.best((i - 24, i + 1) for i, _ in c.hits),
        "beginning": c.best(iter([(0, 150)])),
        "end": c.best(iter([(length - 200, length)])),
        "half_sentences": sum(w > int(ONE / 2) for w in weights),
        "third_sentences": third,
        "third_share": third / len(weights) if weights else 0,
        "sentence_position": weights.index(best) / len(weights) if weights else 0,
        "sentence_f": max((_f(c, a, b, w) for (a, b), w in zip(c.spans(), weights, strict=True)), default=0),
    }


def _f(c: QueryMatches, begin: int, end: int, weight: int) -> float:
    """Return the harmonic mean of the matching shares of the query's weight and of the sentence's idf.

    Return 0 if at most an eighth of the query matches.
    """
    hit = sum(c.idf_at[i] for i, t in c.inside(begin, end) if c.kind[t] & CONTENT)
    if weight <= int(ONE / 8) or not hit:
        return 0
    recall, precision = weight / ONE, hit / sum(c.idf_at[begin:end])
    return 2 * recall * precision / (recall + precision)


def _phrases(c: QueryMatches) -> dict[str, float]:
    term_at = dict(c.hits)
    runs = [_run(c, term_at, j, i) for i, t in c.hits for j, word in enumerate(c.word) if word == t]
    longest = max((n for _, n in runs), default=0)
    weights = [sum(c.weight[t] for t in c.word[j + 1 - n : j + 1]) for j, n in runs]
    content = [t for t in c.word if c.kind[t] & CONTENT]
    pairs = [(c.weight[a] + c.weight[b], _distance(c.hits, a, b)) for a, b in itertools.pairwise(content)]
    whole = sum(w for w, _ in pairs)
    hits = [(i, t) for i, t in c.hits if c.kind[t] & CONTENT]
    near = [
        min(c.weight[a], c.weight[b]) / (j - i)
        for (i, a), (j, b) in itertools.pairwise(hits)
        if a != b and j - i <= NEAR
    ]
    return {
        "run": longest,
        "run_weight": max(weights, default=0) / ONE,
        "bigrams": sum(w for w, d in pairs if d <= 2) / whole if whole else -1,
        "near_bigrams": sum(w / d for w, d in pairs if d <= NEAR) / whole if whole else -1,
        "nearness": sum(near) / ONE,
        "run_share": longest / len(c.word) if c.word else 0,
    }


def _run(c: QueryMatches, term_at: dict[int, int], word: int, position: int) -> tuple[int, int]:
    """Return `word`, and how many words up to it in the query equal those up to `position` in the text."""
    length = 0
    while length <= word and term_at.get(position - length) == c.word[word - length]:
        length += 1
    return word, length


def _distance(hits: Hits, first: int, second: int) -> int:
    """Return the minimum distance between two terms; it is one more if `second` precedes `first`."""
    found = []
    for i, t in hits:
        if t == second:
            found += [i - j for j, other in hits if other == first and j < i]
        elif t == first:
            found += [i - j + 1 for j, other in hits if other == second and j < i]
    return min(found, default=2 * MOST_TOKENS)
