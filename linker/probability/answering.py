"""Adds P(link) to the answers of an index, and says what speaks against trusting it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from indexes.collection import Collection
from indexes.dtypes import Float64Array, Int64Array
from indexes.hybrid import Answer, Embed
from indexes.interface import BackendUnavailableError, Filter, Hits
from linker.errors import InputError
from linker.probability import drift
from linker.probability.calibration import Calibration
from linker.probability.features import Describer


class Probabilities:
    """A calibration over one opened index."""

    def __init__(self, collection: Collection, calibration: Calibration, embed: Embed | None) -> None:
        """`embed` turns texts into vectors. Raises InputError where the calibration is that of another index."""
        calibration.check(collection.manifest)
        self.calibration, self._collection = calibration, collection
        self._describer = Describer(collection, embed if calibration.source.encoder else None)
        self._changed = calibration.changed(collection.manifest)

    def told(self, answer: Answer, texts: Sequence[str], where: Filter | None = None) -> Answer:
        """Return the answer with P(link) of each hit; where a retriever is unavailable, with a note instead."""
        try:
            rows, features = self._features(texts, answer.hits, where)
        except BackendUnavailableError as e:
            return dataclasses.replace(answer, notes=(*answer.notes, f"no probabilities: {e}"))
        found = self.calibration.probabilities(features)
        first = features[:, 0][rows[:, 0] >= 0]
        notes = (self._changed, drift.warning(self.calibration.seen, first, self.calibration.names))
        return dataclasses.replace(
            answer,
            probabilities=tuple(line[: len(hits)] for line, hits in zip(found, answer.hits, strict=True)),
            calibration=self.calibration.fingerprint,
            notes=(*answer.notes, *filter(None, notes)),
        )

    def _features(
        self, texts: Sequence[str], answered: Sequence[Hits], where: Filter | None
    ) -> tuple[Int64Array, Float64Array]:
        ranking = self._collection.ranking()
        rows = np.full((len(texts), max([1, *map(len, answered)])), -1, dtype=np.int64)
        for number, hits in enumerate(answered):
            rows[number, : len(hits)] = ranking.rows.locate(hits.ids)
        return rows, self._describer.describe(texts, rows, where, ranking)


def of_ranker(answer: Answer) -> Answer:
    """Return a ranker's answer with its scores as P(link); NaN for documents that it did not read."""
    said = tuple(np.where(hits.scores >= 0, hits.scores, np.nan).astype(np.float64) for hits in answer.hits)
    return dataclasses.replace(answer, probabilities=said, calibration=answer.ranker)


def refused(answer: Answer, error: InputError) -> Answer:
    """Return an answer without probabilities that says why it has none."""
    return dataclasses.replace(answer, notes=(*answer.notes, f"no probabilities: {error}"))
