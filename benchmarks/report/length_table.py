"""The table of lengths in docs/training.md; benchmarks/report/readme.py renders it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MEASURES = (("cpu_s", "CPU seconds", 2), ("mib", "MiB", 0))


@dataclass(frozen=True, slots=True)
class Law:
    """A cost of a · n^b for texts of n tokens, and R², the share of the variance of its logarithm that it explains."""

    a: float
    b: float
    explained: float

    @classmethod
    def fit(cls, tokens: Sequence[float], costs: Sequence[float]) -> Law:
        """Fit by least squares on logarithms."""
        x, y = np.log(tokens), np.log(costs)
        b, log_a = np.polyfit(x, y, 1)
        rest = y - (log_a + b * x)
        return cls(float(np.exp(log_a)), float(b), float(1 - rest @ rest / ((y - y.mean()) @ (y - y.mean()))))

    def __str__(self) -> str:
        """Return the law with a for a thousand tokens, whose size says more than that for one."""
        return f"{self.a * 1000**self.b:.3g} · (n / 1,000)^{self.b:.2f}"


def laws(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str], Law]:
    """Return the law of each model and measure."""
    found = {}
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        for key, *_ in MEASURES:
            found[model, key] = Law.fit([row["tokens"] for row in own], [row[key] for row in own])
    return found


def star_length(results: Any) -> Iterator[str]:
    """CPU time and memory of a training step by length, and the law that they follow."""
    rows = {(row["model"], row["tokens"]): row for row in results["rows"]}
    lengths = list(dict.fromkeys(tokens for _, tokens in rows))
    yield (
        "| two texts, a forward and a backward pass "
        f"| {' | '.join(f'{n:,} tokens' for n in lengths)} | law, for n tokens | R² |"
    )
    yield "|---" * (3 + len(lengths)) + "|"
    units = {key: (unit, digits) for key, unit, digits in MEASURES}
    for (name, key), law in laws(results["rows"]).items():
        unit, digits = units[key]
        cells = [f"{rows[name, n][key]:,.{digits}f}" for n in lengths]
        yield f"| {name}, {unit} | {' | '.join(cells)} | {law} | {law.explained:.3f} |"
