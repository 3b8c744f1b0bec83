"""The table of docs/published.md; benchmarks/report/readme.py renders it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def published(results: Any) -> Iterator[str]:
    """One row a system, then the commands of each row."""
    yield "| | MAP@5 (95 %) | MRR@5 | Success@1 |"
    yield "|---|---|---|---|"
    for name, row in results.items():
        low, high = row["intervals"]["map_cut_5"]
        found = row["measures"]
        yield (
            f"| {name} | {found['map_cut_5']:.3f} ({low:.3f}–{high:.3f}) | {found['recip_rank']:.3f} | "
            f"{found['success_1']:.3f} |"
        )
    yield ""
    yield "```"
    for name, row in results.items():
        yield f"# {name}"
        yield from row["commands"]
    yield "```"
