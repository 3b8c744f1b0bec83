"""The value of every setting on every judged query, computed on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from indexes.dtypes import BoolArray, Float64Array
from indexes.fusion import Ranking, fuse
from indexes.interface import RowArray
from indexes.text.parameters import Bm25Parameters
from linker.engine.tuning.measures import evaluate
from linker.engine.tuning.settings import Setting


class Trials:
    """The judged queries with the rankings of an index's retrievers; `dense` or `bm25` may be missing."""

    def __init__(
        self,
        bm25: Ranking | None,
        dense: Ranking | None,
        relevant: Sequence[Sequence[int]],
        measure: str,
        search: Callable[[Bm25Parameters], Ranking] | None = None,
    ) -> None:
        """Take the rankings with the index's parameters; `search` returns BM25's with other parameters."""
        self._search = search
        self.tries_parameters = search is not None
        self._searched: dict[Bm25Parameters, Ranking] = {}
        self._rankings = {"bm25": bm25, "dense": dense}
        self._relevant, self._measure = relevant, measure
        self._measured: dict[Setting, Mapping[str, Float64Array]] = {}

    def values(self, setting: Setting) -> Float64Array:
        """Return the value of each query [Q] under a setting."""
        return self._by_measure(setting)[self._measure]

    def means(self, setting: Setting) -> dict[str, float]:
        """Return a setting's mean over the queries, by measure."""
        return {name: float(values.mean()) for name, values in self._by_measure(setting).items()}

    def best(self, settings: Sequence[Setting], queries: BoolArray) -> Setting:
        """Return the setting with the highest mean on the marked `queries` [Q]; on a tie, the first."""
        # Rounded, so that the last bit does not decide a tie; on a tie, max takes the first.
        return max(settings, key=lambda s: round(float(self.values(s)[queries].mean()), 12))

    def _by_measure(self, setting: Setting) -> Mapping[str, Float64Array]:
        if setting not in self._measured:
            self._measured[setting] = evaluate(self._rows(setting), self._relevant)
        return self._measured[setting]

    def _rows(self, setting: Setting) -> RowArray:
        rankings = self._rankings
        if setting.bm25 is not None:
            rankings = rankings | {"bm25": self._with(setting.bm25)}
        sides = [ranking for ranking in rankings.values() if ranking is not None]
        if setting.fusion is not None:
            depth = max(*(rows.shape[1] for rows, _ in sides), 1)
            return fuse(sides, setting.fusion, depth)[0]
        alone = rankings[setting.mode]
        return np.empty((len(self._relevant), 0), np.int64) if alone is None else alone[0]

    def _with(self, parameters: Bm25Parameters) -> Ranking:
        assert self._search is not None
        if parameters not in self._searched:
            self._searched[parameters] = self._search(parameters)
        return self._searched[parameters]
