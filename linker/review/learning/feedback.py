"""The order that learns: the whole index is ranked by a model of the topic, which is retrained as reading goes on."""

from __future__ import annotations

import functools
import itertools
import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from indexes.dtypes import Float32Array
from indexes.interface import BackendUnavailableError, Document, RowArray
from linker.review.interface import Candidate, Judgement, Seed
from linker.review.learning.model import (
    FOLDS,
    Example,
    Examples,
    LearnerSettings,
    fingerprint,
    fit,
    held_out,
    vectors_help,
)
from linker.review.population import Nearest, Population

if TYPE_CHECKING:
    from linker.engine.engine import Engine

FIRST = 32  # reads before the first test of whether the vectors help
SPARE = 32  # documents chosen at each training run beyond those expected to be read before the next one

Label = bool | None  # whether a document is relevant; None if it was judged "maybe"


class FeedbackOrder:
    """Continuous active learning: documents the model finds most relevant come first (relevance feedback).

    The model is first trained on the seeds as relevant and random documents as presumed irrelevant. It is trained again
    when the number of reads has grown by the settings' share, on the judgements up to that moment, so that the same
    judgements always lead to the same model. Without any relevant document, the order is random.
    """

    degraded = ""

    def __init__(
        self,
        engine: Engine,
        seeds: Sequence[Seed],
        population: Population,
        settings: LearnerSettings | None = None,
        seed: int = 0,
    ) -> None:
        self._engine, self._seeds, self._population = engine, seeds, population
        self._settings, self._seed = settings or LearnerSettings(), seed
        # One generation for everything indexed by row: a compaction by another process renumbers rows.
        self.foreign = engine.foreign
        collection = self._collection = self.foreign.collection
        self._rows = collection.rows
        self._examples = Examples(self.foreign)
        self._nearest = Nearest(seeds, collection.manifest.analysis)
        self._start: list[Example] | None = None  # examples from the seeds
        generation = collection.manifest.generation
        names = [(s.id, s.full_text, s.document) for s in seeds]
        self.version = fingerprint(self._settings, generation, names, seed)
        self.restart()

    def restart(self) -> None:
        """Forget every judgement and all documents handed out."""
        self._labels: dict[int, Label] = {}  # by row, in the order of reading
        self._handed_out = np.ones(len(self._rows.ids), dtype=bool)
        self._handed_out[self._population.rows] = False
        # the numbers of reads at which the current model was trained and the next one is due
        self._trained_on, self._due = 0, 0
        self._scores: Float32Array | None = None
        self._best: deque[int] = deque()
        self._compared = 0, False  # reads at the last test, and whether the vectors helped

    def total(self, seed: str) -> None:
        """Return None, which means that every document is a candidate of the topic."""

    def tell(self, judgement: Judgement) -> None:
        """Learn from a judgement at the next request; a document that is no longer in the index is ignored."""
        if judgement.id not in self._rows:
            return
        row = int(self._rows.locate([judgement.id])[0])
        self._handed_out[row] = True
        if judgement.verdict == "skip" or row in self._labels:
            return
        self._labels[row] = None if judgement.verdict == "maybe" else judgement.relevant
        if len(self._labels) >= self._due:
            self._plan()

    def _plan(self) -> None:
        """Schedule a training run on the reads so far, to happen at the next request, and the run after it."""
        self._trained_on = len(self._labels)
        self._due = self._trained_on + max(1, math.floor(self._settings.growth * self._trained_on))
        self._scores, self._best = None, deque()

    def prepare(self) -> Float32Array:
        """Return the score of every row by the current model, float32 [rows]; train it first if that is due."""
        if self._scores is None:
            if not self._due:
                self._plan()
            self._scores = self._train()
        return self._scores

    def next(self) -> Candidate | None:
        """Return the unread document with the highest score, or None at the end; train first if that is due."""
        scores = self.prepare()
        while True:
            if not self._best:
                self._choose()
                if not self._best:
                    return None
            row = self._best.popleft()
            if not self._handed_out[row]:
                self._handed_out[row] = True
                text = self._collection.documents[row].full_text
                return Candidate(self._nearest.of(text), self._rows.ids[row], float(scores[row]))

    def front(self, count: int) -> list[str]:
        """Return the `count` unjudged documents with the highest scores, best first; train first if that is due."""
        scores, unjudged = self.prepare(), np.zeros(len(self._handed_out), dtype=bool)
        unjudged[self._population.rows] = True
        unjudged[list(self._labels)] = False
        left = np.flatnonzero(unjudged)
        return [
            self._rows.ids[row] for row in left[np.argsort(-scores[left], kind="stable")][:count].tolist()
        ]

    def _choose(self) -> None:
        """Put the best of the remaining rows into `_best`; ties are in row order."""
        assert self._scores is not None
        left = np.flatnonzero(~self._handed_out)
        count = min(len(left), self._due - self._trained_on + SPARE)
        values = -self._scores[left]
        if count < len(left):
            bar = np.partition(values, count - 1)[count - 1]
            left, values = left[values <= bar], values[values <= bar]
        self._best = deque(left[np.argsort(values, kind="stable")].tolist())

    def _train(self) -> Float32Array:
        training = [*self._seed_examples(), *self._judged(), *self._presumed()]
        if len({e.relevant for e in training}) < 2:
            return np.random.default_rng(self._seed).random(len(self._rows.ids), dtype=np.float32)
        return fit(self._examples, training, self._settings, self._seed, vectors=self._uses_vectors())

    def _uses_vectors(self) -> bool:
        """Return whether to use vectors, which is tested after FIRST, 2 · FIRST, 4 · FIRST, … judgements."""
        if self._examples.vectors is None or self._trained_on < FIRST:
            return False
        count = FIRST << (self._trained_on // FIRST).bit_length() - 1
        if self._compared[0] != count:
            judged = [example for _, example in self._known(count)]
            helps = vectors_help(self._examples, self._seed_examples(), judged, self._settings, self._seed)
            self._compared = count, helps
        return self._compared[1]

    def held_out(self, groups: Mapping[str, str]) -> dict[str, float]:
        """Return, by id, the score of each judged document from a model that has not seen it.

        groups: by id, the representative of a document and its copies, because a model must not see the copies either.
        """
        judged = self._known(len(self._labels))
        ids = {row: self._rows.ids[row] for row, _ in judged}
        order = {
            group: n for n, group in enumerate(dict.fromkeys(groups.get(id_, id_) for id_ in ids.values()))
        }
        fold = [order[groups.get(id_, id_)] % FOLDS for id_ in ids.values()]
        scores = held_out(
            self._examples, self._seed_examples(), judged, fold, self._settings, self._seed,
            vectors=self._uses_vectors(),
        )  # fmt: skip
        return {ids[row]: scores[row] for row, _ in judged if row in scores}

    def _seed_examples(self) -> list[Example]:
        if self._start is None:
            ids = [seed.document for seed in self._seeds if seed.document and seed.document in self._rows]
            rows = self._rows.locate([*dict.fromkeys(i for i in ids if i)])
            others = [s for s in self._seeds if not s.document or s.document not in self._rows]
            self._start = [self._example(row, True) for row in rows.tolist()]
            self._start += self._texts([seed.full_text for seed in others])
        return self._start

    def _texts(self, texts: Sequence[str]) -> list[Example]:
        """Return examples of texts that are not in the index; without its encoder, they have no vectors."""
        try:
            vectors = (
                list(self._engine.embed(texts)) if self._examples.vectors is not None and texts else None
            )
        except BackendUnavailableError as error:
            self.degraded, vectors = f"seeds without vectors: {error}", None
        return [
            Example(
                self._examples.text(Document("seed", text)),
                vectors[number] if vectors else None,
                True,
                1.0,
            )
            for number, text in enumerate(texts)
        ]

    def _judged(self) -> list[Example]:
        return [example for _, example in self._known(self._trained_on)]

    def _known(self, count: int) -> list[tuple[int, Example]]:
        """Return the rows and examples of the relevant and irrelevant documents among the first `count` reads."""
        first = itertools.islice(self._labels.items(), count)
        return [(row, self._example(row, label)) for row, label in first if label is not None]

    def _presumed(self) -> list[Example]:
        """Return random documents as presumed negatives; none once enough documents have been judged."""
        known = list(self._labels.items())[: self._trained_on]
        if sum(label is not None for _, label in known) >= self._settings.negatives:
            return []
        judged = {row for row, _ in known}
        return [self._example(r, False, self._settings.presumed) for r in self._pool if r not in judged]

    @functools.cached_property
    def _pool(self) -> list[int]:
        """Random rows, the same at every training run."""
        rows: RowArray = self._population.rows
        generator = np.random.default_rng([self._seed, len(rows)])
        drawn: list[int] = generator.choice(
            rows, min(self._settings.negatives, len(rows)), replace=False
        ).tolist()
        return drawn

    def _example(self, row: int, relevant: bool, weight: float = 1.0) -> Example:
        vectors = self._examples.vectors
        return Example(self._examples.row(row), None if vectors is None else vectors[row], relevant, weight)
