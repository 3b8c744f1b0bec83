"""The table of docs/similarity.md; benchmarks/report/readme.py renders it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def news_similarity(results: Any) -> Iterator[str]:
    """Pearson of every system on test, by language pair, and the Williams tests between steps."""
    systems = results["systems"]
    kinds = list(next(iter(systems.values()))["kinds"])
    seeds = max(len(row["seeds"]) for row in systems.values())
    yield (
        f"Pearson on {results['pairs']} test pairs (95 % bootstrap interval), mean of up to {seeds} seeds; "
        f"{results['train']} pairs to train on:"
    )
    yield ""
    yield f"| | all | {' | '.join(kinds)} |"
    yield f"|---|---|{'---|' * len(kinds)}"
    for name, row in systems.items():
        low, high = row["interval"]
        cells = " | ".join("–" if row["kinds"][k] is None else f"{row['kinds'][k]:.2f}" for k in kinds)
        yield f"| {name} | {row['pearson']:.3f} ({low:.3f}–{high:.3f}) | {cells} |"
    yield ""
    yield "| is ahead of | difference | p, Williams one-sided, of each seed |"
    yield "|---|---|---|"
    for step, ps in results["williams_p"].items():
        a, b = step.split(" > ")
        difference = systems[a]["pearson"] - systems[b]["pearson"]
        yield f"| {a} > {b} | {difference:+.3f} | {', '.join(_p(p) for p in ps)} |"


def _p(p: float) -> str:
    return "< .0001" if p < 1e-4 else f"{p:.4f}".removeprefix("0")
