"""The tables of P(link) and promised precision, for docs/probabilities.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

SETS = {
    "statements2articles": "statements → articles",
    "tweets2claims": "tweets → claims",
    "bbc-news": "headlines → news",
    "descriptions": "descriptions → pages",
}


def measures(results: Any) -> Iterator[str]:
    """How good the probabilities of first hits are on queries that took no part."""
    yield (
        "| set | scores | queries | calibration error (by chance alone) | Brier, below the base rate's | AUC "
        "| AUC of BM25's score |"
    )
    yield "|---|---|---|---|---|---|---|"
    for kind, sets in results["measures"].items():
        for name, row in sets.items():
            error, gain = row["calibration_error"], row["brier_gain"]
            yield (
                f"| {SETS[name]} | {kind} | {row['test']:,} | {error[0]:.3f} [{error[1]:.3f}, {error[2]:.3f}] "
                f"({row['noise_floor']:.3f}) | {gain[0]:.0%} [{gain[1]:.0%}, {gain[2]:.0%}] | {_of(row['auc'])} "
                f"| {_of(row['auc_bm25'])} |"
            )


def splits(results: Any) -> Iterator[str]:
    """In how many random splits a precision of .9 was kept, and how many links."""
    yield (
        "| set | scores | links held out | promise kept (95 %) | plain threshold kept "
        "| precision under the promise, mean | share of the oracle's links (middle 90 %) | nothing promised |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for kind, sets in results["splits"].items():
        for name, row in sets.items():
            low, high = row["promise_held_interval"]
            few, many = row["promise_coverage_middle_90"]
            yield (
                f"| {SETS[name.partition(',')[0]]} | {kind} | {row['learn']:,} | {row['promise_held']:.3f} [{low:.3f}, "
                f"{high:.3f}] | {row['plain_held']:.3f} | {row['promise_precision']:.3f} "
                f"| {row['promise_coverage']:.2f} [{few:.2f}, {many:.2f}] | {row['none']:.0%} |"
            )


def shift(results: Any) -> Iterator[str]:
    """Tweets: a threshold from dev, which is easier than test."""
    yield "| scores | right on dev | right on test | precision on test | warned of |"
    yield "|---|---|---|---|---|"
    for kind, row in results["shift"].items():
        dev, test = row["dev"] or (0, 0), row["test"]
        warned = row["warning"].partition("(")[2].partition(":")[0] or "nothing"
        precision = "–" if row["precision"] is None else f"{row['precision']:.3f}"
        yield f"| {kind} | {dev[0]} of {dev[1]} | {test[0]} of {test[1]} | {precision} | {warned} |"


def drift(results: Any) -> Iterator[str]:
    """How often a batch of 100 queries raises the warning."""
    yield "| calibrated on | scores | queries of the same set (95 %) | of another set, at least |"
    yield "|---|---|---|---|"
    for kind, sets in results["drift"].items():
        for name, row in sets.items():
            same, low, high = row["the same"]
            other = min(value for key, value in row.items() if key != "the same")
            yield f"| {SETS[name]} | {kind} | {same:.3f} [{low:.3f}, {high:.3f}] | {other:.2f} |"


def cost(results: Any) -> Iterator[str]:
    """CPU time of a query of statements, with probabilities and without."""
    yield "| CPU-milliseconds per query | alone, with P(link) | without | 300 at once, with | without |"
    yield "|---|---|---|---|---|"
    for kind, row in results["cost"].items():
        cells = [row[f"{how}_{told}"] for how in ("alone", "batch") for told in ("with", "without")]
        yield f"| {kind} | {' | '.join(f'{cell:.2f}' for cell in cells)} |"


def _of(figure: Any) -> str:
    value, low, high = figure
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {
    "precision.measures": measures,
    "precision.splits": splits,
    "precision.shift": shift,
    "precision.drift": drift,
    "precision.cost": cost,
}
