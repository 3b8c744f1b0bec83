"""The tables of the stopping rules, for docs/stopping.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

TARGETS = ("0.8", "0.9", "0.95")


def rules(results: Any) -> Iterator[str]:
    """Every rule on the topics that nothing was chosen on."""
    yield (
        f"**{results['reviews']:,} simulated reviews of {results['topics']} topics**; here those of the half of the "
        "topics on which nothing was chosen, with 15 relevant documents or more. Share of reviews that reached the "
        "target (95 % interval over topics), and reads over those of an oracle that stops at the target:"
    )
    yield ""
    yield "| rule | .80 reached | .90 | .95 | × oracle at .80 | .90 | .95 |"
    yield "|---|---|---|---|---|---|---|"
    for rule, rows in results["rules_test"].items():
        shares = [_interval(rows[t]["reached"]) if t in rows else "" for t in TARGETS]
        costs = [f"{rows[t]['times_oracle'][0]:.1f}" if t in rows else "" for t in TARGETS]
        yield f"| {rule} | {' | '.join([*shares, *costs])} |"
    yield ""
    default = results["rules_test_large"].get("urn, w = 20", {})
    large = ", ".join(f"{default[t]['reached'][0]:.3f}" for t in TARGETS if t in default)
    costs_large = ", ".join(f"{default[t]['times_oracle'][0]:.1f} ×" for t in TARGETS if t in default)
    yield f"Topics of more than 100 relevant documents, default: reached {large} at {costs_large} the oracle's reads."
    choice = results["chosen_on_dev"]["urn"]
    there = results["rules_test"].get(choice, {})
    yield ""
    reached = ", ".join(f"{there[t]['reached'][0]:.3f}" for t in TARGETS if t in there)
    yield (
        "On the other half of the topics, the cheapest urn that reached every target in 95 % of the reviews was "
        f"“{choice}”. On this half it reached {reached}; the default is w = 20, as it was before this measurement."
    )
    few = results["fewer_than_15"]
    yield ""
    yield (
        f"Topics with fewer than 15 relevant documents: the default claimed something in {few['claims']} of "
        f"{few['reviews']} reviews."
    )


def audit(results: Any) -> Iterator[str]:
    """What the audit adds, by kind of review."""
    yield (
        "| reviews | target | number | reached before the audit | after it | reads before | with audits | certified "
        "(median) | bound held |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for kind, rows in results["audit"].items():
        for target, row in rows.items():
            certified = "" if row["certified_median"] is None else f"{row['certified_median']:.2f}"
            cells = [
                target, str(row["reviews"]), _interval(row["reached_before"]), _interval(row["reached_after"]),
                f"{row['reads_before_median']:,.0f}", f"{row['reads_median']:,.0f}", certified,
                _interval(row["valid"]),
            ]  # fmt: skip
            yield f"| {kind} | {' | '.join(cells)} |"
    yield ""
    yield "Hidden topics over all targets, by the number of documents that only the hidden topic has:"
    yield ""
    yield "| documents | reviews | reached before the audit | after it |"
    yield "|---|---|---|---|"
    for name, row in results["hidden"].items():
        yield f"| {name} | {row['reviews']} | {_interval(row['before'])} | {_interval(row['after'])} |"
    sequence = results["any_time"]
    yield ""
    yield (
        f"A bound that may be looked at after every document was never wrong in {_interval(sequence['valid'])} of "
        f"{sequence['reviews']} reviews; after at most 1,000 audited documents it certifies a recall of "
        f"{sequence['certified_median']:.2f} in the median."
    )


def noise(results: Any) -> Iterator[str]:
    """What wrong judgements do to the rules, on all topics."""
    yield "| judgements | rule | .80 reached | .90 | .95 | stopped before the end | × oracle at .80 | .90 | .95 |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for kind, table in results["noise"].items():
        for rule, rows in table.items():
            shares = [f"{rows[t]['reached'][0]:.3f}" for t in TARGETS]
            costs = [f"{rows[t]['times_oracle'][0]:.1f}" for t in TARGETS]
            estimated = min(rows[t]["estimated"] for t in TARGETS)
            yield f"| {kind} | {rule} | {' | '.join(shares)} | {estimated:.2f} | {' | '.join(costs)} |"


def _interval(values: list[float]) -> str:
    mean, low, high = values
    return f"{mean:.3f} ({low:.3f}–{high:.3f})"


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {
    "stopping": rules,
    "stopping.audit": audit,
    "stopping.noise": noise,
}
