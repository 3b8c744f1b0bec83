"""Adds P(link) to the answers of an index, with warnings if it may not be reliable."""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from indexes.anywhere import AnyCollection
from indexes.dtypes import Float64Array, Int64Array
from indexes.hybrid import Answer, Embed
from indexes.interface import BackendUnavailableError, Filter, Hits
from linker.base.errors import InputError
from linker.scoring.probability import drift
from linker.scoring.probability.calibration import Calibration
from linker.scoring.probability.features import Describer


class Probabilities:
    """A calibration over one opened index."""

    def __init__(self, collection: AnyCollection, calibration: Calibration, embed: Embed | None) -> None:
        """`embed` turns texts into vectors. Raises InputError if the calibration belongs to another index."""
        calibration.check(collection.manifest)
        self.calibration, self._collection = calibration, collection
        self._describer = Describer(collection, embed if calibration.source.encoder else None)
        self._changed = calibration.changed(collection.manifest)

    def with_probabilities(self, answer: Answer, texts: Sequence[str], where: Filter | None = None) -> Answer:
        """Return the answer with P(link) of each hit or, if a retriever is unavailable, with a note instead."""
        try:
            rows, features = self._features(texts, answer.hits, where)
        except BackendUnavailableError as e:
            return dataclasses.replace(answer, notes=(*answer.notes, f"no probabilities: {e}"))
        found = self.calibration.probabilities(features)
        first = features[:, 0][rows[:, 0] >= 0]
        notes = (self._changed, drift.warning(self.calibration.seen, first, self.calibration.names))
        return dataclasses.replace(
            _with(answer, self.calibration.fingerprint, found), notes=(*answer.notes, *filter(None, notes))
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
    """Return a ranker's answer with its scores as P(link); NaN for documents that it did not score."""
    said = [np.where(hits.scores >= 0, hits.scores, np.nan).astype(np.float64) for hits in answer.hits]
    return _with(answer, answer.ranker, said)


def _with(answer: Answer, calibration: str, said: Iterable[Float64Array]) -> Answer:
    hits = [
        dataclasses.replace(one, probabilities=p[: len(one)])
        for one, p in zip(answer.hits, said, strict=True)
    ]
    return dataclasses.replace(answer, hits=hits, calibration=calibration)


def refuse(answer: Answer, error: InputError) -> Answer:
    """Return an answer without probabilities, with the reason."""
    return dataclasses.replace(answer, notes=(*answer.notes, f"no probabilities: {error}"))
