"""Choose BM25's parameters and field weights on judged queries, one after the other, by the ranking of BM25 alone."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from indexes.dtypes import BoolArray, Int64Array
from indexes.fusion import Ranking
from indexes.hybrid import HybridIndex
from indexes.store.records import Manifest
from indexes.text.parameters import Bm25Parameters
from linker.engine.tuning.measures import HYBRID_CERTAINTY, Lead
from linker.engine.tuning.settings import Setting, Trials

GRID: Mapping[str, tuple[float, ...]] = {
    "k1": (0.6, 0.9, 1.2, 1.6, 2.0, 2.5),
    "b": (0.3, 0.5, 0.75, 0.9),
    "k3": (0.0, 1.0, 4.0, math.inf),
}
FIELD_WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # weights tried for each field, if an index has several
# Returns the parameters chosen on the marked queries, or None for the index's own.
Parameters = Callable[[BoolArray], Bm25Parameters | None]


@dataclass(frozen=True, slots=True)
class Bm25Search:
    """A search with any BM25 parameters: `search` returns the rankings of the judged queries.

    `current` are the parameters of the index. `grid` has the values to try; it may leave out a parameter.
    """

    search: Callable[[Bm25Parameters], Ranking]
    current: Bm25Parameters
    grid: Mapping[str, tuple[float, ...]] = dataclasses.field(default_factory=lambda: GRID)

    @classmethod
    def of(cls, hybrid: HybridIndex, manifest: Manifest, texts: Sequence[str]) -> Self | None:
        """Return the search of an index for `texts`; None without BM25. On a server, only k3 can change per query."""
        text, depth = hybrid.text, hybrid.settings.depth
        if text is None:
            return None
        grid = {"k3": GRID["k3"]} if manifest.elastic else GRID
        return cls(lambda bm25: text.search_rows(texts, depth, None, bm25), manifest.bm25, grid)


def choice_of_parameters(trials: Trials, bm25: Bm25Search | None, folds: Int64Array) -> Parameters:
    """Return a function that chooses parameters on some of the queries.

    The function returns the index's own parameters, unless others lead by more than one standard error out of fold, by
    BM25's ranking alone. `folds`, int64 [Q], is the fold of each query.
    """
    if bm25 is None:
        return lambda queries: None
    current = trials.values(Setting("bm25"))
    tuned = current.copy()
    for fold in np.unique(folds):
        inside = folds == fold
        if not inside.all():
            chosen = best_parameters(trials, bm25, ~inside)
            tuned[inside] = trials.values(Setting("bm25", bm25=chosen))[inside]
    if Lead.of(tuned, current).exceeds(HYBRID_CERTAINTY):
        return lambda queries: best_parameters(trials, bm25, queries)
    return lambda queries: None


def best_parameters(trials: Trials, bm25: Bm25Search, queries: BoolArray) -> Bm25Parameters | None:
    """Return the best parameters on the marked `queries` [Q], chosen one after the other; None: the index's."""
    setting = Setting("bm25")
    fields = [field.name for field in bm25.current.fields]
    steps = [partial(_with_values, name=name, values=values) for name, values in bm25.grid.items()]
    steps += [partial(_with_weights, field=field) for field in fields if len(fields) > 1]
    for others_of in steps:
        others = others_of(setting.bm25 or bm25.current)
        options = [setting, *(Setting("bm25", bm25=p if p != bm25.current else None) for p in others)]
        setting = trials.best(options, queries)
    return setting.bm25


def _with_values(now: Bm25Parameters, name: str, values: Sequence[float]) -> list[Bm25Parameters]:
    return [now.changed(**{name: value}) for value in values if value != getattr(now, name)]


def _with_weights(now: Bm25Parameters, field: str) -> list[Bm25Parameters]:
    found = [now.weighted({field: weight}) for weight in FIELD_WEIGHTS]
    return [p for p in found if p != now and any(f.weight for f in p.fields)]
