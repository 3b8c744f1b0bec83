"""The model of a topic: a linear SVM over BM25 rows plus a part of a logistic regression over vectors."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import xxhash

from indexes.anywhere import AnyCollection
from indexes.dtypes import AnyArray, Float32Array
from indexes.interface import Document, Matrix, MissingExtraError
from indexes.text.linear import TextVector
from linker.scoring.probability import logistic

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CACHED = 20_000  # documents whose vectors are kept
# scikit-learn's checks cost as much as a small model; the numbers here are finite and the parameters known.
UNCHECKED = {"assume_finite": True, "skip_parameter_validation": True}
# The tolerances of its LogisticRegression: a closer minimum takes three times as long.
QUICK = {"gtol": 1e-4, "ftol": 64 * np.finfo(float).eps, "maxls": 50, "maxiter": 100}


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """What the model is; the defaults were chosen on topics of their own (benchmarks/review.py).

    text_c, vector_c: C of the SVM and of the logistic regression. vector_weight: what the z-score of the latter counts
    beside the former's value. positive, presumed: what a relevant document and a presumed negative weigh beside a
    judged negative. negatives: how many random documents are presumed negative until as many were judged to be.
    growth: the share by which reads grow until the model is trained again.
    """

    text_c: float = 0.11
    vector_c: float = 5.0
    vector_weight: float = 0.2
    positive: float = 9.8
    presumed: float = 0.1
    negatives: int = 100
    growth: float = 0.05


class Examples:
    """The vectors of documents that a model is trained on, each computed once."""

    def __init__(self, collection: AnyCollection) -> None:
        self.collection, self.linear = collection, collection.linear
        encoder = collection.manifest.encoder
        blocks = collection.documents.vectors(encoder.dim) if encoder else []
        # Not as a memory map, whose rows cost more to make than to read.
        self.vectors: Matrix | None = np.asarray(blocks[0]) if blocks else None
        self.mean = np.zeros(0) if self.vectors is None else self.vectors.mean(axis=0, dtype=np.float64)
        self.hashes = array("Q")  # of the terms, by column
        self._columns: dict[int, int] = {}
        self._known: dict[int, TextVector] = {}

    def row(self, row: int) -> TextVector:
        """Return the text of a row of the index as a vector; its terms are columns."""
        if row not in self._known:
            if len(self._known) >= CACHED:
                self._known.clear()
            self._known[row] = self.text(self.collection.documents[row])
        return self._known[row]

    def text(self, document: Document) -> TextVector:
        """Return a document's text as a vector; its terms are columns."""
        vector = self.linear.vector(document)
        columns = []
        for term in vector.terms.tolist():
            columns.append(self._columns.setdefault(term, len(self._columns)))
            if columns[-1] == len(self.hashes):
                self.hashes.append(term)
        order = np.argsort(columns)  # here once: scikit-learn would sort all rows again in each training
        return TextVector(np.array(columns, dtype=np.int32)[order], vector.values[order])

    def matrix(self, vectors: Sequence[TextVector]) -> csr_matrix:
        """Return vectors as the rows of one matrix, over all columns that are known so far."""
        from scipy.sparse import csr_matrix

        ends = np.cumsum([0, *(len(v.terms) for v in vectors)])
        parts = [np.concatenate([part[i] for part in vectors]) for i in (1, 0)]
        matrix = csr_matrix((parts[0], parts[1], ends), shape=(len(vectors), len(self.hashes)))
        matrix.has_sorted_indices = True
        return matrix


@dataclass(frozen=True, slots=True)
class Example:
    """A document to learn from: its text, its vector (float32 [dim], or None), whether it is relevant, its weight."""

    text: TextVector
    vector: Float32Array | None
    relevant: bool
    weight: float


def fit(
    examples: Examples, training: Sequence[Example], settings: LearnerSettings, seed: int
) -> Float32Array:
    """Return the score of every row, float32 [rows], from relevant and other examples.

    Raises MissingExtraError without scikit-learn.
    """
    labels = np.array([e.relevant for e in training])
    weights = np.array([e.weight for e in training])
    scores = _text_scores(examples, training, labels, weights, settings, seed)
    with_vectors = [e for e in training if e.vector is not None]
    if examples.vectors is not None and len({e.relevant for e in with_vectors}) == 2:
        dense = _vector_scores(examples, with_vectors, settings)
        scores += settings.vector_weight * dense
    return scores


def _text_scores(
    examples: Examples,
    training: Sequence[Example],
    labels: AnyArray,
    weights: AnyArray,
    settings: LearnerSettings,
    seed: int,
) -> Float32Array:
    models = _models()
    svm = models.svm.LinearSVC(loss="squared_hinge", C=settings.text_c, random_state=seed)
    with models.config_context(**UNCHECKED):
        svm.fit(examples.matrix([e.text for e in training]), labels, sample_weight=weights)
    weight = svm.coef_[0]
    used = np.flatnonzero(weight)
    hashes = np.array(examples.hashes, dtype=np.uint64)
    return examples.linear.scores(hashes[used], weight[used])


def _vector_scores(
    examples: Examples, training: Sequence[Example], settings: LearnerSettings
) -> Float32Array:
    """Return the z-scores of all rows by a logistic regression over vectors, float32 [rows]."""
    assert examples.vectors is not None
    rows = np.array([e.vector for e in training], dtype=np.float64) - examples.mean
    labels, weights = np.array([(e.relevant, e.weight) for e in training]).T
    fitted = logistic.fit(rows, labels > 0, 1 / settings.vector_c, weights=weights, options=QUICK)
    values = examples.vectors @ fitted[:-1].astype(np.float32)
    values -= values.mean()
    values /= np.sqrt(values @ values / len(values)) or 1
    return values


def load() -> None:
    """Load scikit-learn, which takes seconds, before the first model needs it. Raises MissingExtraError."""
    _models()


def _models() -> Any:
    try:
        import sklearn
        import sklearn.svm
    except ModuleNotFoundError:
        raise MissingExtraError("scikit-learn", "review") from None
    return sklearn


def fingerprint(settings: LearnerSettings, generation: int, *more: object) -> str:
    """Return what decides an order besides the judgements, as a short hash."""
    return xxhash.xxh3_64_hexdigest(orjson.dumps([asdict(settings), generation, *more]))
