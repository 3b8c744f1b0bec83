"""The tables of docs/published.md; benchmarks/report/readme.py renders it."""

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


SYSTEMS = ("published_star", "published_bucc", "published_news", "published_sts")  # benchmarks of one frame


def systems(results: Any) -> Iterator[str]:
    """Tables of benchmarks.support.published: two lines per system, published and ours, and why they differ."""
    for table in results["tables"]:
        measures, each = table["measures"], any(row["why"] for row in table["rows"])
        yield f"**{table['title']}**"
        yield ""
        yield f"| | | {' | '.join(measures)} |" + (" why they differ |" if each else "")
        yield "|---" * (2 + len(measures) + each) + "|"
        for row in table["rows"]:
            lines = [("published", row["published"], "")] if row["published"] else []
            for n, (label, values, why) in enumerate([*lines, (row["label"], row["here"], row["why"])]):
                cells = [
                    "" if n else row["system"],
                    label,
                    *(_cell(values.get(m)) for m in measures),
                    *([why] if each else []),
                ]
                yield f"| {' | '.join(cells)} |"
        if table["why"]:
            yield ""
            yield f"Why they differ: {table['why']}."
        yield ""


def _cell(value: Any) -> str:
    """Return a figure with three decimals and its deviation over seeds; an integer is a count, None is empty."""
    if value is None:
        return ""
    if isinstance(value, dict):
        spread = "" if value["sd"] is None else f" ± {value['sd']:.3f}".replace("0.", ".")
        return f"{value['mean']:.3f}{spread}"
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:.3f}" if isinstance(value, float) else str(value)
    )
