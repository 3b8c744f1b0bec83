"""The tables of benchmarks/attention.py, for docs/attention.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

TITLES = {"tweets2claims": "tweets → claims", "statements2articles": "statements → articles"}


def attempts(results: Any) -> Iterator[str]:
    """MRR by the cosine alone, and each attempt's lead over its own start."""
    for data, title in TITLES.items():
        yield f"**{title}**"
        yield ""
        yield "| | what learns | against | dev: MRR | lead (p) | test: MRR | lead (p) | seeds | CPU s |"
        yield "|---|---|---|---|---|---|---|---|---|"
        for name, row in results.get(data, {}).items():
            label = f"{name} ({row['kind']})" if row["kind"] else name
            against = row["test"].get("against", "")
            cells = [
                cell for split in ("dev", "test") for cell in (f"{row[split]['mrr']:.3f}", _lead(row[split]))
            ]
            yield f"| {label} | {row['says']} | {against} | {' | '.join(cells)} | {row['seeds']} | {row['cpu_s']:.0f} |"
        yield ""


def learned(results: Any) -> Iterator[str]:
    """What α and the inputs of the keys became, the mean over heads."""
    yield "| | attempt | α | idf | count | first position |"
    yield "|---|---|---|---|---|---|"
    for data, title in TITLES.items():
        for name, row in results.get(data, {}).items():
            if any(abs(a - 1.5) > 1e-3 for a in row["alpha"]) or any(map(any, row["inputs"])):
                low, high = min(row["alpha"]), max(row["alpha"])
                inputs = " | ".join(f"{sum(line) / len(line):.2f}" for line in row["inputs"])
                yield f"| {title} | {name} | {low:.2f}–{high:.2f} | {inputs} |"


def stage(results: Any) -> Iterator[str]:
    """What further vectors per document add at the ranking stage."""
    for data, title in TITLES.items():
        rows = results.get("stage", {}).get(data, {})
        if rows:
            yield f"**{title}**"
            yield ""
            yield "| | share of types kept | dev: MRR | lead (p) | test: MRR | lead (p) |"
            yield "|---|---|---|---|---|---|"
            for name, row in rows.items():
                cells = [
                    cell
                    for split in ("dev", "test")
                    for cell in (f"{row[split]['mrr']:.3f}", _lead(row[split]))
                ]
                share = row.get("kept")
                yield f"| {name} | {'' if share is None else f'{share:.0%}'} | {' | '.join(cells)} |"
            yield ""


def _lead(row: dict[str, Any]) -> str:
    return f"{row['lead']:+.3f} ({row['p']:.4f})" if "lead" in row else ""


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {
    "attention.attempts": attempts,
    "attention.learned": learned,
    "attention.stage": stage,
}
