"""The tables of the open world: calibration, sure links and mined links by the share of pages without a counterpart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

LANGUAGES = ("fr", "de", "ru", "tr", "zh")
HEADS = {
    "ece": "ECE (by chance)",
    "sure": "precision of links ≥ .9 (links)",
    "f1": "F1 at .5 / at the threshold that is expected best / at the best",
    "promised": "precision under `--precision 0.9` (links)",
    "share": "estimated share of linked pages",
}


def open_world(results: Any) -> Iterator[str]:
    """Means over seeds, by measure and share of orphans."""
    cells: dict[tuple[str, str, float, str], list[Any]] = defaultdict(list)
    for row in results["rows"]:
        cells[row["system"], row["variant"], row["orphans"], row["language"]].append(row)
    codes = [c for c in LANGUAGES if any(c == code for *_, code in cells)]
    for system, variant in dict.fromkeys((s, v) for s, v, *_ in cells):
        yield f"| {system}, on `{variant}` | orphans | {' | '.join(codes)} |"
        yield "|---" * (2 + len(codes)) + "|"
        shares = sorted({o for s, v, o, _ in cells if (s, v) == (system, variant)})
        for measure, head in HEADS.items():
            for orphans in shares:
                found = [_cell(measure, cells.get((system, variant, orphans, c), ())) for c in codes]
                yield f"| {head} | {orphans:.0%} | {' | '.join(found)} |"
        yield ""


def _cell(measure: str, rows: Sequence[Any]) -> str:
    if not rows:
        return "not measured"
    if measure in ("sure", "promised"):
        count = sum(row[measure] for row in rows)
        right = sum(row[measure] * row[f"{measure}_precision"] for row in rows if row[measure])
        return f"{_short(right / count)} ({count:,})" if count else "– (0)"
    if measure == "ece":
        return f"{_mean(rows, 'ece')} ({_mean(rows, 'floor')})"
    if measure == "f1":
        expected = _mean(rows, "chosen_f1") if all("chosen_f1" in row for row in rows) else "–"
        return f"{_mean(rows, 'f1')} / {expected} / {_mean(rows, 'best_f1')}"
    return _mean(rows, "estimated_share")


def _mean(rows: Sequence[Any], name: str) -> str:
    return _short(fmean(row[name] for row in rows))


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
