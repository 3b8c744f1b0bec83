"""The recall of an approximate index against its cost: measured, chosen from, written as JSON and drawn."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from indexes.interface import Matrix
from indexes.vectors.faiss_index import FaissIndex
from indexes.vectors.recall import Curve, Point, choose, held_out, measure
from linker.errors import InputError
from linker.files import write_atomically

SEED = 0


@dataclass(frozen=True, slots=True)
class RecallTuning:
    """The curve, the target, and what was chosen; `reached` says whether any setting finds so much."""

    curve: Curve
    target: float
    chosen: Point
    held_out: bool

    @property
    def reached(self) -> bool:
        """Say whether the chosen settings find as much as was asked for."""
        return self.chosen.recall >= self.target

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
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
    index: FaissIndex, target: float, k: int, queries: Matrix | None = None, sample: int = 500
) -> RecallTuning:
    """Measure recall at k of every setting and choose the cheapest that reaches the target.

    Without queries [n, dim], documents are drawn and held out: each asks for its neighbours, and its own row does
    not count. Raises InputError, IndexesError.
    """
    if not 0 < target <= 1:
        raise InputError(f"the recall to reach must lie between 0 and 1, not {target}")
    own = None
    if queries is None:
        live = index.live_rows()
        drawn = np.random.default_rng(SEED).choice(live, min(sample, len(live)), replace=False)
        queries, own = held_out(index, np.sort(drawn))
    if not len(queries):
        raise InputError("there are no queries to measure recall on")
    curve = measure(index, queries, k, own)
    return RecallTuning(curve, target, choose(curve.points, target), own is not None)


def write_curve(tuning: RecallTuning, path: Path) -> Path | None:
    """Write the curve as JSON and, beside it, as a picture; return the picture, or None without matplotlib."""
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
        axes.set(xscale="log", xlabel="CPU ms a query", ylabel=f"recall at {tuning.curve.k}")
        axes.legend()
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=150)
    write_atomically(picture, drawn.getvalue())
    return picture


def _frontier(points: Sequence[Point]) -> list[Point]:
    """Return the points that find more than every cheaper one."""
    best: list[Point] = []
    for point in sorted(points, key=lambda p: p.ms):
        if not best or point.recall > best[-1].recall:
            best.append(point)
    return best
