"""The evidence that two documents are about the same story, and P(same story) from it.

The features of a pair come from BM25, linker's default ranker and the cosine of the whole texts, averaged over the
directions in which one document found the other, and from the days between their dates. If the documents are in two
languages, words say little, and only the cosines of an encoder's vectors count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from indexes.arrays import distinct
from indexes.dtypes import AnyArray, BoolArray, Float32Array, Float64Array, Int64Array
from indexes.kernels.products import dots
from indexes.text.forward_index import ForwardIndex
from indexes.text.scoring import lucene_idf
from linker.scoring.groups.languages import change_of_odds, leads
from linker.scoring.probability import logistic

TAKEN = ("likelihood", "coverage", "names", "numbers", "run_weight")  # features of the ranker that are used
FOUND = ("odds", "ahead", "rank", *TAKEN)  # features that a document has as another one's candidate
NAMES = (*FOUND, "cosine", "mutual", "recent")  # features of a pair, without an encoder
RECENT = NAMES.index("recent")
# With an encoder, also the cosine of the vectors and, in two languages, the smaller and the larger of the two leads.
BY_VECTORS = ("near", "less", "more")
LONG = 80  # a text with at least this many distinct terms is longer than a post
# days after which `recent` has fallen to 1/e; the value of `recent` if a date is not known
FADING, UNDATED = 14.0, 0.2
KINDS = 3  # kinds of pairs in one language: with no, one or two long texts; KINDS itself: in two languages
FEWEST = 40  # a kind's weights are learned if it has this many judged pairs, some of each class
ROWS = 1 << 12  # rows counted at a time
# In a corpus of SMALL documents or fewer, `PairModel.few` is added in full, and from LARGE on not at all.
SMALL, LARGE = 20, 300


def weights(forward: ForwardIndex, rows: Int64Array) -> tuple[csr_array, AnyArray]:
    """Return (1 + ln f) · idf of the terms of distinct `rows` (int64 [n]), and the terms' hashes, uint64 [v].

    The weights are float32 CSR [n, v]; each row has length one.
    """
    order = np.argsort(rows)
    parts = list(_tokens(forward, rows[order]))
    hashes = distinct(np.concatenate([np.empty(0, np.uint64), *(terms for terms, _, _ in parts)]))
    sizes, columns, values = [np.zeros(1, np.int64)], [np.empty(0, np.int32)], [np.empty(0, np.float32)]
    for terms, tokens, lengths in parts:
        row = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
        position = np.searchsorted(hashes, terms).astype(np.uint64)[tokens]
        codes, count = np.unique(row << np.uint64(32) | position, return_counts=True)
        sizes.append(np.bincount((codes >> np.uint64(32)).astype(np.int64), minlength=len(lengths)))
        columns.append((codes & np.uint64(0xFFFFFFFF)).astype(np.int32))
        values.append((1 + np.log(count)).astype(np.float32))
    column = np.concatenate(columns)
    idf = lucene_idf(forward.frequencies(hashes), forward.rows).astype(np.float32)
    begins = np.cumsum(np.concatenate(sizes))
    size, data = np.diff(begins), np.concatenate(values) * idf[column]
    length = np.sqrt(np.add.reduceat(data * data, begins[:-1][size > 0]))
    data /= np.repeat(length, size[size > 0])
    matrix = csr_array((data, column, begins), shape=(len(rows), len(hashes)))
    return matrix if (rows[1:] > rows[:-1]).all() else matrix[np.argsort(order)], hashes


def _tokens(forward: ForwardIndex, rows: Int64Array) -> Iterator[tuple[AnyArray, AnyArray, Int64Array]]:
    """Yield the terms of ascending rows, a few rows at a time.

    Each item holds the hashes of the terms, each token's position among these, and the number of tokens of each row.
    """
    for segment in forward.segments:
        low, high = np.searchsorted(rows, [segment.first, segment.first + segment.documents]).tolist()
        for start in range(low, high, ROWS):
            some = rows[start : min(start + ROWS, high)] - segment.first
            lengths = segment.offsets[some + 1] - segment.offsets[some]
            edges = np.cumsum(lengths) - lengths
            tokens = segment.tokens[
                np.repeat(segment.offsets[some] - edges, lengths) + np.arange(lengths.sum())
            ]
            used = distinct(tokens)
            yield segment.hashes[used], np.searchsorted(used, tokens).astype(np.uint32), lengths


@dataclass(frozen=True, eq=False)
class Findings:
    """Which documents found which others as candidates.

    `one` int64 [d] found `other` [d], with the features `values` float32 [d, f]; `last` bool [d]: whether `other` is
    the last of a full list.
    """

    one: Int64Array
    other: Int64Array
    values: Float32Array
    last: BoolArray

    def __len__(self) -> int:
        return len(self.one)

    def where(self, kept: BoolArray) -> Findings:
        """Return the findings marked in `kept`, bool [d]."""
        return Findings(self.one[kept], self.other[kept], self.values[kept], self.last[kept])

    @staticmethod
    def of(parts: Sequence[Findings]) -> Findings:
        """Return the findings of all parts as one."""
        columns = zip(*((p.one, p.other, p.values, p.last) for p in parts), strict=True)
        return Findings(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """The pairs of n documents that may belong together, and the evidence for it.

    `pairs` int64 [m, 2], the smaller number first; `values` float64 [m, names]; `last` bool [m, 2]: whether the second
    document is the last of the first one's candidates, in a full list, and the reverse. `across` bool [m]: whether the
    documents are in two languages, which only matters with an encoder. `texts` float32 CSR [n, v]: the weights of the
    terms, whose `hashes` are uint64 [v].
    """

    count: int
    pairs: Int64Array
    values: Float64Array
    names: tuple[str, ...]
    last: BoolArray
    across: BoolArray
    texts: csr_array
    hashes: AnyArray

    @cached_property
    def long(self) -> Int64Array:
        """The number of long texts in each pair, int64 [m]."""
        return np.asarray((np.diff(self.texts.indptr) >= LONG)[self.pairs].sum(axis=1))

    @property
    def kind(self) -> Int64Array:
        """The kind of each pair, int64 [m]."""
        return np.where(self.across, KINDS, self.long)

    @cached_property
    def cosine(self) -> Float64Array:
        """The cosine of the whole texts, float64 [m]."""
        return self.values[:, self.names.index("cosine")]

    def weakest(self, probabilities: Float64Array) -> Float64Array:
        """Return P of each document's last candidate, float64 [n], from P of pairs [m]; 0 if its list is not full."""
        weakest = np.zeros(self.count)
        for side in (0, 1):
            here = self.last[:, side]
            weakest[self.pairs[here, side]] = probabilities[here]
        return weakest

    def where(self, kept: BoolArray) -> PairEvidence:
        """Return the evidence of the pairs marked in `kept`, bool [m]."""
        return replace(
            self,
            pairs=self.pairs[kept],
            values=self.values[kept],
            last=self.last[kept],
            across=self.across[kept],
        )


def join_findings(
    findings: Findings,
    terms: tuple[csr_array, AnyArray],
    days: Float64Array,
    languages: Int64Array | None = None,
) -> PairEvidence:
    """Return the evidence of the pairs in which a document found another, with the `terms` and the `days` of all.

    `languages` int64 [n] of the documents, −1 if unknown, if an encoder's cosine is a feature of the findings.
    """
    texts, hashes = terms
    count = texts.shape[0]
    low, high = np.minimum(findings.one, findings.other), np.maximum(findings.one, findings.other)
    codes, pair, times = np.unique(low * count + high, return_inverse=True, return_counts=True)
    pairs = np.stack([codes // max(count, 1), codes % max(count, 1)], axis=1)
    means = [np.bincount(pair, column, len(codes)) / times for column in findings.values.T]
    begins = np.searchsorted(pairs[:, 0], np.arange(count + 1))
    cosine = dots(texts, texts, begins, pairs[:, 1]).astype(np.float64)
    ends = np.zeros((len(pairs), 2), bool)
    ends[pair[findings.last], (findings.one > findings.other)[findings.last].astype(int)] = True
    apart = np.exp(-np.abs(days[pairs[:, 0]] - days[pairs[:, 1]]) / FADING)
    known = [*means[: len(FOUND)], cosine, times > 1, np.where(np.isnan(apart), UNDATED, apart)]
    if languages is None:
        across = np.zeros(len(pairs), bool)
        return PairEvidence(count, pairs, np.column_stack(known), NAMES, ends, across, texts, hashes)
    near = findings.values[:, len(FOUND)].astype(np.float64)
    across = (languages[pairs] >= 0).all(axis=1) & (languages[pairs[:, 0]] != languages[pairs[:, 1]])
    both = np.zeros((len(pairs), 2))
    both[across] = leads(findings.one, findings.other, near, languages, pairs[across], means[-1][across])
    known += [means[-1], *both.T]
    return PairEvidence(
        count, pairs, np.column_stack(known), (*NAMES, *BY_VECTORS), ends, across, texts, hashes
    )


@dataclass(frozen=True, eq=False)
class PairModel:
    """P(same story) of a pair: a logistic regression on the evidence `names` for each kind of pair.

    `weights` float64 [3, names + 1]: for two short texts (posts), one (a post and an article) and none; the last of
    each is the offset. Inputs are standardised by `centre` and `scale`. For pairs in two languages (see
    `adapt`), `across` has the weights of the leads (see `leads`), then the offset, and `share` is the share of
    same-story pairs in the data from which they were learned. `few` float64 [3, names + 1] is added to the
    weights in a small corpus, none if it is empty.
    """

    names: tuple[str, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]
    across: tuple[float, float, float] = (0.0, 0.0, 0.0)
    share: float = 0.5
    few: tuple[tuple[float, ...], ...] = ()

    def of_size(self, count: int) -> PairModel:
        """Return the model for a corpus of `count` documents.

        In a small corpus no word can be rare, so that two documents about one story differ less from others by their
        scores, and a pair of candidates is about one story more often.
        """
        if not self.few or count >= LARGE:
            return self
        share = min(math.log(LARGE / max(count, 1)) / math.log(LARGE / SMALL), 1.0)
        weights = np.array(self.weights) + share * np.array(self.few)
        return replace(self, weights=tuple(map(tuple, weights.tolist())), few=())

    def inputs(self, evidence: PairEvidence) -> Float64Array:
        """Return the standardised inputs, float64 [m, names]."""
        columns = [evidence.names.index(name) for name in self.names]
        return (evidence.values[:, columns] - self.centre) / self.scale

    def probabilities(self, evidence: PairEvidence) -> Float64Array:
        """Return P(same story) of the pairs, float64 [m]."""
        from scipy.special import expit

        of = np.array(self.weights)[evidence.kind]
        return np.asarray(expit((self.inputs(evidence) * of[:, :-1]).sum(axis=1) + of[:, -1]))

    def relearn(self, evidence: PairEvidence, same: BoolArray) -> PairModel:
        """Return a model fitted to labelled pairs (`same`, bool [m]), with weights shrunk towards this model's."""
        x, weights = self.inputs(evidence), list(self.weights)
        for kind, prior in enumerate(weights):
            here = evidence.kind == kind
            if here.sum() >= FEWEST and 0 < same[here].sum() < here.sum():
                weights[kind] = tuple(logistic.fit(x[here], same[here], prior=np.array(prior)).tolist())
        return replace(self, weights=tuple(weights))

    def adapt(self, evidence: PairEvidence) -> PairModel:
        """Return the model to use for a corpus with this evidence: itself, unless pairs have cosines of vectors.

        The inputs BY_VECTORS are added. They count only for pairs in two languages, whose offset follows from the
        share of pairs of the same story among them.
        """
        if BY_VECTORS[0] not in evidence.names or not len(evidence.pairs):
            return self
        near, *both = (evidence.values[:, evidence.names.index(name)] for name in BY_VECTORS)
        *of_leads, offset = self.across
        odds = np.stack(both, axis=1)[evidence.across] @ of_leads + offset
        offset += change_of_odds(odds, self.share)
        alike = [(*of[:-1], 0.0, 0.0, 0.0, of[-1]) for of in self.weights]
        across = (*(0.0 for _ in self.names), 0.0, *of_leads, offset)
        centre, scale = (float(near.mean()), 0.0, 0.0), (float(near.std()) + 1e-6, 1.0, 1.0)
        return PairModel(
            (*self.names, *BY_VECTORS), (*self.centre, *centre), (*self.scale, *scale), (*alike, across)
        )


def fit(parts: Sequence[tuple[PairEvidence, BoolArray]]) -> PairModel:
    """Fit a model to several corpora, each given as its evidence and as which pairs are the same story, bool [m].

    Among pairs with the same number of long texts, each corpus has the same weight. If no corpus has dates for most of
    its documents, the time between documents is not used.
    """
    values = [evidence.values[:, [evidence.names.index(name) for name in NAMES]] for evidence, _ in parts]
    centre = np.round(np.stack([v.mean(axis=0) for v in values]).mean(axis=0), 4)
    scale = np.round(np.stack([v.std(axis=0) for v in values]).mean(axis=0), 4)
    weights = []
    for kind in range(KINDS):
        samples = [(v[e.long == kind], y[e.long == kind]) for v, (e, y) in zip(values, parts, strict=True)]
        samples = [(x, y) for x, y in samples if y.any()]
        most = max((len(y) for _, y in samples), default=0)
        of = np.concatenate([np.full(len(y), most / len(y)) for _, y in samples])
        x, same = np.concatenate([x for x, _ in samples]), np.concatenate([y for _, y in samples])
        if all(np.median(x[:, RECENT]) == UNDATED for x, _ in samples):
            x[:, RECENT] = centre[RECENT]
        fitted = logistic.fit(np.asarray((x - centre) / scale, np.float64), same, weights=of)
        weights.append(tuple(round(float(w), 4) for w in fitted))
    return PairModel(NAMES, tuple(float(c) for c in centre), tuple(float(s) for s in scale), tuple(weights))


def fit_across(
    parts: Sequence[tuple[PairEvidence, BoolArray]],
) -> tuple[tuple[float, float, float], float]:
    """Return `across` and `share` of a model from corpora in several languages; each corpus has the same weight."""
    here = [(evidence.values[evidence.across][:, -2:], same[evidence.across]) for evidence, same in parts]
    of = np.concatenate([np.full(len(y), 1 / len(y)) for _, y in here])
    x, same = np.concatenate([x for x, _ in here]), np.concatenate([y for _, y in here])
    less, more, offset = logistic.fit(x, same, weights=of / of.max()).round(4).tolist()
    return (less, more, offset), round(float(np.mean([y.mean() for _, y in here])), 4)
