"""Tables of vector search for the pages, from results/flat.json and ann.json."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

COMPARED = "batch="


def _flat(results: Any) -> Iterator[str]:
    yield (
        f"**Exact search** of {results['rows']:,} × {results['dim']} on one core, CPU ms a batch: certified / "
        "tuned FAISS (times as fast). Real passages, and random vectors:"
    )
    yield ""
    yield "| batch | k | passages | random |"
    yield "|---|---|---|---|"
    for name in (n for n in results["real"] if n.startswith(COMPARED)):
        batch, k = (part.partition("=")[2] for part in name.split(", "))
        cells = [_cell(results[case][name]) for case in ("real", "random") if case in results]
        yield f"| {batch} | {k} | {' | '.join(cells)} |"
    pairs = {n: c for n, c in results.items() if n.startswith("all pairs")}
    for name, cost in pairs.items():
        yield ""
        yield f"A{name[1:]}: {cost['cpu_s']:,.1f} CPU s, at most {cost['peak_mib']:,.0f} MiB."
    yield ""
    yield "The libraries' ways, CPU ms for 1 and for 64 queries (k = 5, from 100,000 rows, scaled):"
    yield ""
    yield "| | 1 | 64 |"
    yield "|---|---|---|"
    for name, cost in results["libraries, ms for all rows"].items():
        if isinstance(cost, dict):
            yield f"| {name} | {cost['batch=1']:,.0f} | {cost['batch=64']:,.0f} |"


def _cell(figures: Any) -> str:
    return f"{figures['certified_ms']:,.0f} / {figures['faiss_ms']:,.0f} ({figures['times_as_fast']:.1f} ×)"


# They were not measured again since cells hold codes that are compared in registers.
OLD_CELLS = "ivfpq", "ivfpq (old cells)"


def _ann(results: Any) -> Iterator[str]:
    yield (
        "**Approximate search**, top ten, one core: CPU ms of a query alone at the cheapest setting that reaches "
        "a recall, and what is built for it:"
    )
    yield ""
    yield "| | build, CPU s | recall .9 | .95 | .99 | exact, by the same index |"
    yield "|---|---|---|---|---|---|"
    for name, row in results.items():
        if name == "sizes":
            continue
        cells = [_at(row["at_recall"].get(target)) for target in ("0.9", "0.95", "0.99")]
        exact = f"{row['exact_ms']:.2f}" if "exact_ms" in row else ""
        yield f"| {name.replace(*OLD_CELLS)} | {row['build_cpu_s']:,.1f} | {' | '.join(cells)} | {exact} |"
    if "sizes" in results:
        yield ""
        sizes = ", ".join(
            f"{name.replace(*OLD_CELLS)} {size:,.0f}" for name, size in results["sizes"].items()
        )
        yield f"Bytes per row beside the vectors' 1,024: {sizes}."


def _at(point: Any) -> str:
    return f"{point['ms']:.2f} ({point['recall']:.3f})" if point else "not reached"


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {"flat": _flat, "ann": _ann}
