"""The model of a topic: a linear SVM over BM25 rows plus a weighted logistic regression over vectors."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import xxhash

from indexes.dtypes import AnyArray, Float32Array
from indexes.interface import Document, Matrix, MissingExtraError
from indexes.text.linear import TextVector
from linker.scoring.probability import logistic

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from linker.engine.foreign import Foreign

CACHED = 20_000  # maximum number of documents whose vectors are cached
FOLDS = 5  # folds of held-out judgements
SAMPLE = 2048  # approximate number of vectors in a sample
# scikit-learn's checks take as long as training a small model; here, numbers are finite and parameters valid.
UNCHECKED = {"assume_finite": True, "skip_parameter_validation": True}
# The tolerances of scikit-learn's LogisticRegression: with tighter ones, training takes three times as long.
QUICK = {"gtol": 1e-4, "ftol": 64 * np.finfo(float).eps, "maxls": 50, "maxiter": 100}


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    """The model's parameters; the defaults were chosen on separate topics (benchmarks/review.py).

    text_c, vector_c: C of the SVM and of the logistic regression. vector_weight: the weight of the regression's
    z-score relative to the SVM's value. ratio: total weight of relevant documents relative to all others. presumed:
    weight of a presumed negative relative to a judged one. negatives: how many random documents are presumed negative
    until as many documents have been judged. growth: the model is retrained when reads have grown by this share.
    """

    text_c: float = 0.11
    vector_c: float = 5.0
    vector_weight: float = 0.2
    ratio: float = 9.8
    presumed: float = 0.1
    negatives: int = 100
    growth: float = 0.05


class Examples:
    """The vectors of the documents that a model is trained on; each is computed once."""

    def __init__(self, foreign: Foreign) -> None:
        collection = self.collection = foreign.collection
        self.foreign = foreign
        encoder = collection.manifest.encoder
        blocks = collection.documents.vectors(encoder.dim) if encoder else []
        # An array rather than a memory map: creating a view of each row of a map costs more than reading it.
        self.vectors: Matrix | None = np.asarray(blocks[0]) if blocks else None
        self.mean = np.zeros(0) if self.vectors is None else self.vectors.mean(axis=0, dtype=np.float64)
        self.hashes = array("Q")  # hashes of terms, by column
        self._columns: dict[int, int] = {}
        self._known: dict[int, TextVector] = {}

    @property
    def sample(self) -> Matrix:
        """Vectors of rows spread evenly over the index, used to standardise scores while models are compared."""
        assert self.vectors is not None
        return self.vectors[:: max(1, len(self.vectors) // SAMPLE)]

    def row(self, row: int) -> TextVector:
        """Return the text of an index row as a vector over the columns, one per term."""
        if row not in self._known:
            if len(self._known) >= CACHED:
                self._known.clear()
            self._known[row] = self.text(self.collection.documents[row])
        return self._known[row]

    def text(self, document: Document) -> TextVector:
        """Return a document's text as a vector whose terms are columns."""
        vector = self.foreign.vector(document)
        columns = []
        for term in vector.terms.tolist():
            columns.append(self._columns.setdefault(term, len(self._columns)))
            if columns[-1] == len(self.hashes):
                self.hashes.append(term)
        order = np.argsort(columns)  # sort once here: scikit-learn would sort all rows in every training run
        return TextVector(np.array(columns, dtype=np.int32)[order], vector.values[order])

    def matrix(self, vectors: Sequence[TextVector]) -> csr_matrix:
        """Return vectors as the rows of one matrix, over all columns known so far."""
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
    examples: Examples,
    training: Sequence[Example],
    settings: LearnerSettings,
    seed: int,
    *,
    vectors: bool = True,
) -> Float32Array:
    """Return the score of every row, float32 [rows], by a model trained on examples; without `vectors`, by text only.

    Raises MissingExtraError without scikit-learn.
    """
    scores = _text_scores(examples, training, settings, seed)
    with_vectors = [e for e in training if e.vector is not None]
    if vectors and examples.vectors is not None and len({e.relevant for e in with_vectors}) == 2:
        scores += settings.vector_weight * _vector_scores(examples, with_vectors, settings)
    return scores


def held_out(
    examples: Examples, always: Sequence[Example], judged: Sequence[tuple[int, Example]], fold: Sequence[int],
    settings: LearnerSettings, seed: int, *, vectors: bool = True,
) -> dict[int, float]:  # fmt: skip
    """Return the score of each judged row from a model that has not seen its fold, by row.

    always: examples that every model is trained on. judged: rows with their examples; fold: the fold of each. A fold is
    skipped if the other examples are all of one class.
    """
    found = dict[int, float]()
    for number in sorted(set(fold)):
        training = [*always, *(e for (_, e), f in zip(judged, fold, strict=True) if f != number)]
        if len({e.relevant for e in training}) == 2:
            scores = fit(examples, training, settings, seed, vectors=vectors)
            found |= {
                row: float(scores[row]) for (row, _), f in zip(judged, fold, strict=True) if f == number
            }
    return found


def vectors_help(
    examples: Examples,
    always: Sequence[Example],
    judged: Sequence[Example],
    settings: LearnerSettings,
    seed: int,
) -> bool:
    """Return whether the vectors help to separate held-out judgements, compared with the text alone.

    They help if, with them, the relevant document scores higher in more pairs of a relevant and another document of the
    same fold. always: examples that every model is trained on.
    """
    gain = 0
    for number in range(FOLDS):
        out = [e for n, e in enumerate(judged) if n % FOLDS == number]
        kept = [*always, *(e for n, e in enumerate(judged) if n % FOLDS != number)]
        dense = [e for e in kept if e.vector is not None]
        if any(len({e.relevant for e in part}) < 2 for part in (out, kept, dense)):
            continue
        text = examples.matrix([e.text for e in out]) @ _svm(examples, kept, settings, seed)
        weights = _vector_weights(examples, dense, settings)
        spread = examples.sample @ weights
        values = (np.array([e.vector for e in out]) @ weights - spread.mean()) / (spread.std() or 1)
        relevant = np.array([e.relevant for e in out])
        for sign, scores in ((1, text + settings.vector_weight * values), (-1, text)):
            gain += sign * int(np.sign(scores[relevant][:, None] - scores[~relevant]).sum())
    return gain > 0


def balanced(labels: AnyArray, weights: AnyArray, ratio: float) -> AnyArray:
    """Return weights [n] that give relevant examples `ratio` times the total weight of all others; the mean is 1."""
    weights = np.where(labels, 1.0, weights[labels].sum() / (ratio * weights[~labels].sum())) * weights
    return np.asarray(weights * (len(weights) / weights.sum()))


def _balanced(training: Sequence[Example], settings: LearnerSettings) -> tuple[AnyArray, AnyArray]:
    labels = np.array([e.relevant for e in training])
    return labels, balanced(labels, np.array([e.weight for e in training]), settings.ratio)


def _text_scores(
    examples: Examples, training: Sequence[Example], settings: LearnerSettings, seed: int
) -> Float32Array:
    weight = _svm(examples, training, settings, seed)
    used = np.flatnonzero(weight)
    hashes = np.array(examples.hashes, dtype=np.uint64)
    return examples.foreign.scores(hashes[used], weight[used])


def _svm(examples: Examples, training: Sequence[Example], settings: LearnerSettings, seed: int) -> AnyArray:
    """Return a linear SVM's weights of the terms, float64 [columns known so far]."""
    models, (labels, weights) = _models(), _balanced(training, settings)
    svm = models.svm.LinearSVC(loss="squared_hinge", C=settings.text_c, random_state=seed)
    with models.config_context(**UNCHECKED):
        svm.fit(examples.matrix([e.text for e in training]), labels, sample_weight=weights)
    coefficients: AnyArray = svm.coef_[0]
    return coefficients


def _vector_scores(
    examples: Examples, training: Sequence[Example], settings: LearnerSettings
) -> Float32Array:
    """Return the z-scores of all rows under a logistic regression over vectors, float32 [rows]."""
    assert examples.vectors is not None
    values = examples.vectors @ _vector_weights(examples, training, settings)
    values -= values.mean()
    values /= np.sqrt(values @ values / len(values)) or 1
    return values


def _vector_weights(
    examples: Examples, training: Sequence[Example], settings: LearnerSettings
) -> Float32Array:
    """Return a logistic regression's weights of the dimensions of centred vectors, float32 [dim]."""
    rows = np.array([e.vector for e in training], dtype=np.float64) - examples.mean
    labels, weights = _balanced(training, settings)
    fitted = logistic.fit(rows, labels, 1 / settings.vector_c, weights=weights, options=QUICK)
    return fitted[:-1].astype(np.float32)


def load() -> None:
    """Import scikit-learn, which takes seconds, before the first model needs it. Raises MissingExtraError."""
    _models()


def _models() -> Any:
    try:
        import sklearn
        import sklearn.svm
    except ModuleNotFoundError:
        raise MissingExtraError("scikit-learn", "review") from None
    return sklearn


def fingerprint(settings: LearnerSettings, generation: int, *more: object) -> str:
    """Return a short hash of everything that determines an order, except the judgements."""
    return xxhash.xxh3_64_hexdigest(orjson.dumps([asdict(settings), generation, *more]))
