"""The expected responses of a service, from an engine without a server, one generation after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexes.hybrid import Mode
from indexes.interface import ScoreArray
from linker.engine.engine import Engine

K = 10
SPARE = 10  # hits kept beyond K, for scores that are equal up to rounding
CLOSE = 1e-4  # relative: encodings in batches differ in their last digits
BEHIND = 3  # maximum number of commits by which a response may lag while a worker opens them
KEPT = 50  # generations
Known = dict[tuple[Mode, int], tuple[tuple[str, ...], ScoreArray]]


@dataclass
class Answered:
    """One response to compare: its query, and the last commit at the time of the request."""

    mode: Mode
    query: int
    generation: int
    ids: tuple[str, ...]
    scores: ScoreArray


class Oracle:
    """Results from an engine without a server, kept for each generation."""

    def __init__(self, directory: Path, texts: Sequence[str], modes: Sequence[Mode]) -> None:
        self._engine, self._texts, self._modes = Engine.open(directory, follow=False), texts, modes
        self._known: dict[int, Known] = {}
        self.learn()

    @property
    def generation(self) -> int:
        """The last commit that the oracle knows."""
        return max(self._known)

    def learn(self) -> None:
        """Run the queries on the last commit, one by one."""
        self._engine.refresh()
        generation, known = self._engine.collection.manifest.generation, {}
        if generation in self._known:
            return
        for mode in self._modes:
            for number, text in enumerate(self._texts):
                answer = self._engine.search(text, K + SPARE, mode=mode)
                known[mode, number] = (answer.hits[0].ids, answer.hits[0].scores)
        self._known[generation] = known
        self._known.pop(generation - KEPT, None)

    def generation_of(self, answered: Answered) -> int | None:
        """Return the newest of the possible generations that gives this response."""
        for generation in sorted(self._known, reverse=True):
            if generation < answered.generation - BEHIND:
                return None
            if _same(self._known[generation][answered.mode, answered.query], answered):
                return generation
        return None


def _same(known: tuple[tuple[str, ...], ScoreArray], answered: Answered) -> bool:
    """Return whether hits are the top K; scores that are equal up to rounding may swap places."""
    ids, scores = known
    if len(answered.ids) != min(K, len(ids)) or len(set(answered.ids)) < len(answered.ids):
        return False
    score_of = dict(zip(ids, scores.tolist(), strict=True))
    own = np.array([score_of.get(id_, np.inf) for id_ in answered.ids])
    return bool(
        np.allclose(own, answered.scores, rtol=CLOSE) and np.allclose(own, scores[: len(own)], rtol=CLOSE)
    )
