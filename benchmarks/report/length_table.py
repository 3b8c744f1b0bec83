"""The table of lengths in docs/training.md; benchmarks/report/readme.py renders it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def star_length(results: Any) -> Iterator[str]:
    """CPU time and memory of a training step by length, and as which power of the length they grow."""
    rows = {(row["model"], row["tokens"]): row for row in results["rows"]}
    lengths = list(dict.fromkeys(tokens for _, tokens in rows))
    yield f"| two texts, a forward and a backward pass | {' | '.join(f'{n:,} tokens' for n in lengths)} | grows as |"
    yield "|---" * (2 + len(lengths)) + "|"
    for name, powers in results["exponents"].items():
        for key, unit, digits in (("cpu_s", "CPU seconds", 2), ("mib", "MiB", 0)):
            cells = [f"{rows[name, n][key]:,.{digits}f}" for n in lengths]
            yield f"| {name}, {unit} | {' | '.join(cells)} | n^{powers[key]:.2f} |"
