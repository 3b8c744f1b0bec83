"""Which documents find which others: the opening of each document is a query to the index of all documents.

If most documents are known, only the new ones are queries, and then those earlier documents that a new one is likely
to belong to, because the new one probably is among their candidates, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import xxhash

from indexes.anywhere import AnyCollection
from indexes.arrays import distinct
from indexes.dtypes import BoolArray, Float32Array, Float64Array, Int64Array
from linker.scoring.groups.default_model import SHIPPED
from linker.scoring.groups.evidence import FOUND, TAKEN, Findings, PairEvidence, join_findings, weights
from linker.scoring.groups.languages import language_of, number_languages
from linker.scoring.ranking import pooled
from linker.scoring.ranking.candidates import VECTOR_NAMES, Gatherer, Pool, PoolSettings
from linker.scoring.ranking.ranker import BATCH, Ranker

# one more than is used, since a document's first candidate is itself
SETTINGS = PoolSettings(bm25=21, dense=11)
OPENING = 400  # characters of a document used as its query
STEEPEST = 10.0  # bound on the log odds
AGAIN = 0.01  # an earlier document is queried again if its P(same story) with a new one is at least this
VERSION = 1  # version of the method: increase it whenever findings change

# Earlier findings, and which documents (bool [n]) must be queried again.
Known = tuple[Findings, BoolArray]


def openings(texts: Sequence[str]) -> list[str]:
    """Return the beginning of each text, truncated between words."""
    return [
        text if len(text) <= OPENING else text[:OPENING].rpartition(" ")[0] or text[:OPENING]
        for text in texts
    ]


def origin(collection: AnyCollection) -> str:
    """Return a hash of everything, except the documents, that determines which documents find which."""
    manifest, ranker = collection.manifest, pooled.load()
    encoder = manifest.encoder.fingerprint if manifest.encoder and manifest.embeds else ""
    parts = (VERSION, ranker.fingerprint, SETTINGS, OPENING, manifest.analysis, manifest.bm25, encoder)
    return xxhash.xxh3_64_hexdigest(repr(parts).encode())


def gather(
    collection: AnyCollection,
    rows: Int64Array,
    texts: Sequence[str],
    days: Float64Array,
    advance: Callable[[int], object] = lambda count: None,
    known: Known | None = None,
    language: Callable[[int], str] | None = None,
) -> tuple[PairEvidence, Findings, int]:
    """Return the evidence of n documents with these `texts` [n], in distinct `rows` (int64 [n]) of an index.

    Also returns which documents found which, and the number of queries. `days` float64 [n]: their dates as days since
    year 1, NaN if not known. Vectors of the index's encoder are taken from the index. `advance` is called with the
    number of newly done documents. `known` holds earlier findings, and which documents are queries; close pairs make
    further ones queries. With an encoder, `language` returns the language of a document by its number; by default, it
    is detected. Raises BackendUnavailableError if a retriever cannot answer.
    """
    finder = Finder(collection, rows, texts, advance)
    of_texts = weights(collection.forward, rows)
    language = language or (lambda i: language_of(texts[i]))
    languages = number_languages([*map(language, range(len(texts)))]) if finder.embeds else None
    earlier, queried = known or (None, np.ones(len(rows), bool))
    found = finder.find(np.flatnonzero(queried))
    if earlier is not None:
        first = join_findings(found, of_texts, days, languages)
        near = first.pairs[SHIPPED.of_size(len(rows)).adapt(first).probabilities(first) >= AGAIN]
        close = distinct(near[~queried[near]])
        queried = queried | np.isin(np.arange(len(rows)), close)
        found = Findings.of([earlier.where(~queried[earlier.one]), found, finder.find(close)])
    return join_findings(found, of_texts, days, languages), found, int(queried.sum())


class Finder:
    """Queries the index of n documents with the openings of some of them.

    `embeds`: whether the cosine of vectors is the last feature of a finding.
    """

    def __init__(
        self,
        collection: AnyCollection,
        rows: Int64Array,
        texts: Sequence[str],
        advance: Callable[[int], object] = lambda count: None,
    ) -> None:
        record = collection.manifest.encoder
        vectors = collection.documents.vectors(record.dim) if record and collection.manifest.embeds else []
        self.embeds = bool(vectors)
        self._rows, self._texts, self._advance = rows, [*texts], advance
        self._asked = rows[:0]

        def embed(_: Sequence[str]) -> Float32Array:
            return np.asarray(vectors[0][self._asked])

        self._gatherer = Gatherer(collection, SETTINGS, embed if vectors else None, collection.hybrid)
        self._ranker = replace(pooled.load(), calibration=pooled.FOR_GROUPS)
        self._place = np.full(int(rows.max(initial=-1)) + 1, -1)
        self._place[rows] = np.arange(len(rows))

    def extend(self, rows: Int64Array, texts: Sequence[str]) -> None:
        """Add the next documents, which are in the last `rows` (int64 [m], ascending) of the index."""
        places = np.full(int(rows[-1]) + 1 - len(self._place), -1)
        places[rows - len(self._place)] = np.arange(len(self._rows), len(self._rows) + len(rows))
        self._place, self._rows = np.concatenate([self._place, places]), np.concatenate([self._rows, rows])
        self._texts.extend(texts)

    def find(self, documents: Int64Array) -> Findings:
        """Return the findings of these documents."""
        features = np.empty((0, len(FOUND) + self.embeds), np.float32)
        parts = [Findings(documents[:0], documents[:0], features, np.empty(0, bool))]
        for start in range(0, len(documents), BATCH):
            some = documents[start : start + BATCH]
            self._asked = self._rows[some]
            pool = self._gatherer.gather(openings([self._texts[i] for i in some.tolist()]))
            hidden = pool.rows == self._asked[:, None]
            parts.append(_findings_of(pool.without(hidden), self._ranker, self._place, some))
            self._advance(len(some))
        return Findings.of(parts)


def _findings_of(pool: Pool, ranker: Ranker, place: Int64Array, documents: Int64Array) -> Findings:
    """Return the findings of the `documents` from their pools; `place` has the document in each row, or −1."""
    valid = pool.valid & (pool.rows < len(place))
    scores = np.where(pool.valid, ranker.scores(pool), 0)
    known = pool.features[:, :, [pool.names.index(name) for name in ranker.names]]
    links, none = ranker.calibration.probabilities(scores, pool.valid, known, ranker.names)
    odds = np.log(np.maximum(links, 1e-12)) - np.log(np.maximum(none, 1e-12))[:, None]
    bm25 = pool.features[:, :, pool.names.index("bm25")]
    rank = np.cumsum(pool.valid, axis=1)
    columns = [
        np.clip(odds, -STEEPEST, STEEPEST),
        bm25 / np.maximum(_medians(bm25, pool.valid), 1e-9),
        np.log(np.maximum(rank, 1)),
    ]
    extra = (*TAKEN, *(name for name in VECTOR_NAMES if name in pool.names))
    columns += [pool.features[:, :, pool.names.index(name)] for name in extra]
    last = rank == SETTINGS.bm25 - 1
    one, at = np.nonzero(valid & (place[np.minimum(pool.rows, len(place) - 1)] >= 0))
    values = np.stack(columns, axis=2)[one, at].astype(np.float32)
    return Findings(documents[one], place[pool.rows[one, at]], values, last[one, at])


def _medians(values: Float32Array, valid: BoolArray) -> Float32Array:
    """Return the median of the valid values in each row, [n, 1]; infinite if there are none.

    `numpy.nanmedian` takes a millisecond, which counts if documents arrive one by one.
    """
    ordered, count = np.sort(np.where(valid, values, np.inf), axis=1), valid.sum(axis=1, keepdims=True)
    middles = np.concatenate(
        [np.maximum(count - 1, 0) // 2, np.minimum(count // 2, valid.shape[1] - 1)], axis=1
    )
    return np.asarray(np.take_along_axis(ordered, middles, axis=1).mean(axis=1, keepdims=True))
