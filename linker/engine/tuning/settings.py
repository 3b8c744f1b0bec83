"""The ways to search that `linker index tune` compares."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from indexes.dtypes import BoolArray, Float64Array
from indexes.fusion import Fusion, Method, Ranking, fuse
from indexes.hybrid import Mode
from indexes.interface import RowArray
from indexes.text.parameters import Bm25Parameters
from linker.engine.tuning.measures import evaluate

WEIGHTS = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9)  # weights of the dense retriever, simplest first
# Weights of the cosine when it is added to BM25 scores divided by their maximum.
COSINE_WEIGHTS = (1.0, 0.5, 1.5, 2.0, 0.25, 0.75, 2.5, 3.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """A way to search: the mode, the fusion (of a hybrid mode), and BM25's parameters (None: the index's)."""

    mode: Mode
    fusion: Fusion | None = None
    bm25: Bm25Parameters | None = None

    def __str__(self) -> str:
        changed = "" if self.bm25 is None else _text(self.bm25)
        if self.fusion is None:
            return f"{self.mode} alone{changed}"
        weights = ":".join(f"{w:g}" for w in self.fusion.weights)
        rank = f" k={self.fusion.k}" if self.fusion.method == "rrf" else ""
        return f"{self.mode} {self.fusion.method} {weights}{rank}{changed}"


def _text(bm25: Bm25Parameters) -> str:
    weights = "".join(f" {field.name}={field.weight:g}" for field in bm25.fields)
    return f" k1={bm25.k1:g} b={bm25.b:g} k3={bm25.k3:g}{weights}"


@dataclass(frozen=True, slots=True)
class SearchSetting:
    """A way to search, with the mean value of each measure."""

    mode: Mode
    fusion: Fusion | None
    means: Mapping[str, float]
    bm25: Bm25Parameters | None = None

    def __str__(self) -> str:
        return str(Setting(self.mode, self.fusion, self.bm25))

    def to_json(self) -> dict[str, Any]:
        """Return the setting and its means as values for JSON."""
        fusion = self.fusion.to_json() if self.fusion else None
        bm25 = self.bm25.to_json() if self.bm25 else None
        return {"mode": self.mode, "fusion": fusion, "bm25": bm25, **self.means}


def fusions() -> list[Fusion]:
    """Return the fusion settings to try, the simplest first."""
    methods: list[tuple[Method, int]] = [
        ("rrf", 60),
        ("rrf", 10),
        ("max", 60),
        ("minmax", 60),
        ("zscore", 60),
    ]
    shared = [Fusion(method, (round(1 - w, 1), w), k) for method, k in methods for w in WEIGHTS]
    return shared + [Fusion("cosine", (1.0, w)) for w in COSINE_WEIGHTS]


def candidates(*, bm25: bool, dense: bool) -> list[Setting]:
    """Return the possible settings of an index with these retrievers, its untuned default first."""
    alone: list[Setting] = [Setting("bm25")] * bm25 + [Setting("dense")] * dense
    if not (bm25 and dense):
        return alone
    default = Fusion()
    return [Setting("hybrid", f) for f in [default, *(f for f in fusions() if f != default)]] + alone


def with_parameters(settings: Sequence[Setting], bm25: Bm25Parameters | None) -> list[Setting]:
    """Return the first setting unchanged, then all with these BM25 parameters; with None, return all unchanged."""
    if bm25 is None:
        return list(settings)
    changed = [s if s.mode == "dense" else dataclasses.replace(s, bm25=bm25) for s in settings]
    return [settings[0], *(s for s in changed if s != settings[0])]


class Trials:
    """The judged queries with the rankings of an index's retrievers, and the value of any setting on them."""

    def __init__(
        self,
        bm25: Ranking | None,
        dense: Ranking | None,
        relevant: Sequence[Sequence[int]],
        measure: str,
        search: Callable[[Bm25Parameters], Ranking] | None = None,
    ) -> None:
        """`bm25` and `dense`: rankings with the index's parameters, or None; `search`: BM25's with other parameters."""
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
