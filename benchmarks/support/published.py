"""The frame of docs/published.md: what a system's authors published, what it gives here, and why they differ.

A benchmark `published_SYSTEM` records {"tables": [table(...), ...]}; benchmarks/report/pair_tables.py renders it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Value = float | int | str | None | Sequence[float]


def table(
    title: str, measures: Sequence[str], rows: Sequence[Mapping[str, Any]], why: str = ""
) -> dict[str, Any]:
    """Return a table of `rows` (below) with one column per measure, and why the two kinds of figures differ."""
    return {"title": title, "measures": list(measures), "rows": list(rows), "why": why}


def row(
    system: str, published: Mapping[str, Value], here: Mapping[str, Value], why: str = "", runs: str = "here"
) -> dict[str, Any]:
    """Return a system's two lines. A list of figures becomes its mean with the number of seeds; `runs` names ours."""
    seeds = max((len(v) for v in here.values() if isinstance(v, (list, tuple))), default=0)
    ours = {name: _mean(value) for name, value in here.items()}
    label = f"{runs} ({seeds} seed{'s' * (seeds > 1)})" if seeds else runs
    return {"system": system, "published": dict(published), "here": ours, "label": label, "why": why}


def _mean(value: Value) -> Any:
    if not isinstance(value, (list, tuple)):
        return value
    if len(value) == 1 and isinstance(value[0], int):
        return value[0]  # a count
    mean = round(statistics.fmean(value), 4)
    return {"mean": mean, "sd": round(statistics.stdev(value), 4) if len(value) > 1 else None}
