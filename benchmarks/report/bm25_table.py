"""The tables of docs/bm25.md; benchmarks/report/readme.py renders them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def _systems(results: Any) -> Iterator[str]:
    """One row a system: MRR on the test split of each set, with its interval."""
    sets = list(results)
    yield f"| MRR on test | {' | '.join(sets)} |"
    yield f"|---|{'---|' * len(sets)}"
    names = dict.fromkeys(name for found in results.values() for name in found["rows"])
    for name in names:
        cells = [_cell(found["rows"].get(name)) for found in results.values()]
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    for name, found in results.items():
        if "all" in found["choices"]:
            yield f"Chosen on dev of {name}: {_choice(found['choices'])}."


def _cell(row: Any) -> str:
    return f"{row['mrr']:.3f} ({row['interval'][0]:.3f}–{row['interval'][1]:.3f})" if row else "–"


def _choice(choices: Any) -> str:
    analysis = choices["all"]["analysis"]
    parts = [f"`--tokenizer {analysis['tokenizer']}`", f"`--min-token {analysis['min_token']}`"]
    parts += ["`--stop-words`"] if analysis["stop_words"] else []
    alone, both = (_parameters(choices[key]["bm25"]) for key in ("parameters", "all"))
    return f"{alone}; with the analysis {', '.join(parts)}: {both}"


def _parameters(values: Any) -> str:
    k3 = "inf" if values["k3"] is None else f"{values['k3']:g}"
    return f"k1 {values['k1']:g}, b {values['b']:g}, k3 {k3}"


def _k3(results: Any) -> Iterator[str]:
    """One row a split of a set, one column a k3."""
    first = next(iter(results.values()))["k3"]
    columns = list(next(iter(first.values())))
    yield f"| MRR by k3 | {' | '.join(columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for name, found in results.items():
        for split, values in found["k3"].items():
            yield f"| {name}, {split} | {' | '.join(f'{values[k3]:.4f}' for k3 in columns)} |"


def _fields(results: Any) -> Iterator[str]:
    """One row a ranking: MRR on dev and test, the paired difference on test to the first row, and speed."""
    yield "| MRR, tweets2claims | dev | test | difference on test | queries per CPU-second |"
    yield "|---|---|---|---|---|"
    for number, (name, row) in enumerate(results["rows"].items()):
        low, high = row["gain_interval"]
        gain = f"{row['gain']:+.3f} ({low:+.3f} to {high:+.3f})" if number else "–"
        yield f"| {name} | {row['dev_mrr']:.3f} | {_cell(row)} | {gain} | {row['queries_per_second']:,} |"
    yield ""
    weights = ", ".join(f"{weight}: {mrr:.3f}" for weight, mrr in results["dev_mrr_by_weight"].items())
    yield f"MRR on dev by the weight of the title, that of the text being 1: {weights}."


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {"bm25": _systems, "bm25.k3": _k3, "fields": _fields}
