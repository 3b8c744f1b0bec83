"""Measure the recall of an approximate index against its cost, choose a setting, and write and plot the curve."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexes.interface import Matrix
from indexes.vectors.recall import ApproximateSearch, Curve, SearchCost, choose, measure
from linker.base.errors import InputError
from linker.base.files import write_atomically

SEED = 0


@dataclass(frozen=True, slots=True)
class RecallTuning:
    """The curve, the target recall and the chosen point; `held_out`: the queries were documents of the index."""

    curve: Curve
    target: float
    chosen: SearchCost
    held_out: bool

    @property
    def reached(self) -> bool:
        """Whether the chosen setting reaches the target."""
        return self.chosen.recall >= self.target

    def to_json(self) -> dict[str, Any]:
        """Return the tuning as values for JSON; times are milliseconds per query (CPU time for a local index)."""
        return {
            "target": self.target,
            "reached": self.reached,
            "chosen": self.chosen.to_json(),
            "k": self.curve.k,
            "queries": self.curve.queries,
            "held_out": self.held_out,
            "exact_ms": round(self.curve.exact_ms, 4),
            "points": [point.to_json() for point in self.curve.points],
        }


def tune_recall(
    index: ApproximateSearch, target: float, k: int, queries: Matrix | None = None, sample: int = 500
) -> RecallTuning:
    """Measure the recall at k of every setting and choose the cheapest setting that reaches the target.

    `queries` are float32 [n, dim]; without them, `sample` documents are held out: each is a query, and its own row
    does not count. Raises InputError if the target is not in (0, 1] or there are no queries, IndexesError if the
    index has nothing to tune.
    """
    if not 0 < target <= 1:
        raise InputError(f"the target recall must be greater than 0 and at most 1, not {target}")
    query_rows = None
    if queries is None:
        queries, query_rows = index.draw(sample, SEED)
    if not len(queries):
        raise InputError("there are no queries to measure recall on")
    curve = measure(index, queries, k, query_rows)
    return RecallTuning(curve, target, choose(curve.points, target), query_rows is not None)


def write_curve(tuning: RecallTuning, path: Path) -> Path | None:
    """Write the curve as JSON and, next to it, as a plot; return the path of the plot, or None without matplotlib."""
    write_atomically(path, (json.dumps(tuning.to_json(), indent=2) + "\n").encode())
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        return None
    picture = path.with_suffix(".png")
    with mpl.rc_context({"text.parse_math": False}):
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.subplots()
        best = _frontier(tuning.curve.points)
        axes.scatter(
            [p.ms for p in tuning.curve.points], [p.recall for p in tuning.curve.points], s=14, alpha=0.5
        )
        axes.plot([p.ms for p in best], [p.recall for p in best])
        axes.axhline(tuning.target, color="black", linewidth=0.8, linestyle=":")
        axes.axvline(tuning.curve.exact_ms, color="gray", linewidth=0.8, label="exact")
        axes.plot(tuning.chosen.ms, tuning.chosen.recall, "o", markersize=9, fillstyle="none", label="chosen")
        axes.set(xscale="log", xlabel="CPU ms per query", ylabel=f"recall at {tuning.curve.k}")
        axes.legend()
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=150)
    write_atomically(picture, content.getvalue())
    return picture


def _frontier(points: Sequence[SearchCost]) -> list[SearchCost]:
    """Return the points whose recall is above that of every cheaper one, cheapest first."""
    best: list[SearchCost] = []
    for point in sorted(points, key=lambda p: p.ms):
        if not best or point.recall > best[-1].recall:
            best.append(point)
    return best
