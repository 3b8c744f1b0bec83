"""A learning order over one matrix of BM25 rows, for quickly simulating many reviews of one corpus."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import Stemmer
from numpy.typing import NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.svm import LinearSVC

from benchmarks.support.common import records
from linker.review.interface import AUDITED, Candidate, Judgement
from linker.review.learning.model import UNCHECKED, LearnerSettings, balanced

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]
K1, B = 1.2, 0.75
LEARNER = LearnerSettings()


@dataclass(frozen=True)
class Topics:
    """A corpus whose documents are judged for every topic: L2-normalised BM25 rows, and a mask of rows by topic."""

    matrix: Any
    relevant: Mapping[str, Flags]


def read_topics(folder: Path) -> Topics:
    """Return the corpus and topics of a folder in the BEIR layout."""
    documents = [*records(folder / "corpus.jsonl.gz")]
    rows = {document["_id"]: row for row, document in enumerate(documents)}
    relevant: dict[str, Flags] = {}
    for line in (folder / "qrels" / "topics.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        topic, id_, score = line.split("\t")
        if int(score) > 0:
            relevant.setdefault(topic, np.zeros(len(rows), dtype=bool))[rows[id_]] = True
    texts = [f"{document['title']}\n{document['text']}" for document in documents]
    return Topics(_bm25(texts), relevant)


def _bm25(texts: Sequence[str]) -> Any:
    """Return the L2-normalised BM25 rows of texts, words stemmed; words in only one document are dropped."""
    stem, word = Stemmer.Stemmer("english"), re.compile(r"\w+")
    counts = CountVectorizer(
        analyzer=lambda text: stem.stemWords(word.findall(text.lower())), min_df=2, dtype=np.float32
    ).fit_transform(texts)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log1p((len(texts) - frequency + 0.5) / (frequency + 0.5))
    of_row = np.repeat(K1 * (1 - B + B * lengths / lengths.mean()), np.diff(counts.indptr))
    counts.data = (counts.data * (K1 + 1) / (counts.data + of_row) * idf[counts.indices]).astype(np.float32)
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1))).ravel()
    matrix = sparse.csr_matrix(sparse.diags_array(1 / np.maximum(norms, 1e-9)).astype(np.float32) @ counts)
    matrix.sort_indices()  # otherwise, every training run sorts its rows
    return matrix


class LearningOrder:
    """The text half of the learner: its SVM over BM25 rows, with its weights and its moments of training.

    An `Order` whose documents are rows, by number. `scores` are those of the last model.
    """

    def __init__(self, matrix: Any, seeds: Sequence[int], seed: int) -> None:
        self.matrix, self._seed = matrix, seed
        self._labels: dict[int, bool] = dict.fromkeys(seeds, True)
        self._taken = np.zeros(matrix.shape[0], dtype=bool)
        self._taken[list(seeds)] = True
        presumed = np.random.default_rng(seed).choice(matrix.shape[0], LEARNER.negatives, replace=False)
        self._presumed = [int(row) for row in presumed if row not in self._labels]
        self._reads = self._due = 0
        self._waiting: Iterator[np.int64] = iter(())

    def next(self) -> Candidate | None:
        """Return the best unread row, or None at the end."""
        if self._reads >= self._due:
            self._train()
        for row in self._waiting:
            if not self._taken[row]:
                self._taken[row] = True
                return Candidate("", str(row), float(self.scores[row]))
        return None

    def tell(self, judgement: Judgement) -> None:
        """Learn from a judgement at the next training run."""
        row = int(judgement.id)
        self._taken[row], self._labels[row] = True, judgement.relevant
        self._reads += 1
        if judgement.relevant and judgement.phase in AUDITED:
            self._due = 0  # no such label was known: train at once

    def correct(self, row: int, relevant: bool) -> None:
        """Replace the label of a judged row, at the next training run, which is due."""
        self._labels[row], self._due = relevant, 0

    def training(self) -> tuple[list[int], NDArray[np.bool_], NDArray[np.float64]]:
        """Return the rows that a model is trained on now, their labels and weights [n]; the judged ones come first."""
        negatives = len(self._labels) - sum(self._labels.values())
        presumed = (
            [row for row in self._presumed if row not in self._labels]
            if negatives < LEARNER.negatives
            else []
        )
        rows = [*self._labels, *presumed]
        labels = np.array([*self._labels.values(), *[False] * len(presumed)])
        weights = np.ones(len(rows))
        weights[len(self._labels) :] = LEARNER.presumed
        return rows, labels, weights

    def _train(self) -> None:
        self._due = self._reads + max(1, math.floor(LEARNER.growth * self._reads))
        rows, labels, weights = self.training()
        svm = LinearSVC(loss="squared_hinge", C=LEARNER.text_c, random_state=self._seed)
        with config_context(**UNCHECKED):
            svm.fit(self.matrix[rows], labels, sample_weight=balanced(labels, weights, LEARNER.ratio))
        self.scores = self.matrix @ svm.coef_[0].astype(np.float32)
        self._waiting = iter(self.left())

    def judged(self) -> Flags:
        """Return which rows were judged, the seeds among them."""
        return self._taken

    def left(self) -> Rows:
        """Return the unread rows, best first."""
        unread = np.flatnonzero(~self._taken)
        return np.asarray(unread[np.argsort(-self.scores[unread], kind="stable")])
