"""What faults of a cluster's nodes do, and what a cluster of 10⁸ or 10¹⁰ documents takes: for docs/."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

SIDES = {"all": "", "cut": "; clients of that node alone"}


def faults(results: Any) -> Iterator[str]:
    """What was lost and wrong, and for how long calls failed, by fault."""
    yield (
        f"Three nodes of {_heap(results)} MiB of heap, each in a network namespace of its own; two threads add and "
        f"delete, two search. The disk that is filled has {results['disk_mib']} MiB. *Until*: seconds from the "
        "beginning of the fault, or from its end, to the last failure; *silent*: the longest time in which one of the "
        "clients had no success."
    )
    yield ""
    yield (
        "| fault, its seconds; shards × copies | acknowledged changes | lost or undone | wrong answers "
        "| searches: failed, until; silent | changes: failed, until; silent | after it: searches failed; changes "
        "| whole again after |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, case in results["cases"].items():
        end = case["end"]
        changes = end["acknowledged_additions"] + end["acknowledged_deletions"]
        lost = sum(end[key] for key in ("lost", "resurrected", "never_written", "other_text"))
        for who, which in SIDES.items():
            if who not in case:
                continue
            side = case[who]
            title = f"{name}, {case['seconds']:g}; {case['shards']} × {case['replicas'] + 1}{which}"
            searches, writes = side["searches"], side["writes"]
            first = [f"{changes:,}", str(lost)] if who == "all" else ["", ""]
            cells = [
                title, *first, str(side["wrong"]), _failed(searches["fault"], True), _failed(writes["fault"], True),
                f"{_failed(searches['after'])}; {_failed(writes['after'])}",
                f"{case['whole_again_s']:.0f} s" if who == "all" else "",
            ]  # fmt: skip
            yield f"| {' | '.join(cells)} |"


def _heap(results: Any) -> str:
    return str(results["heap"].partition("-Xms")[2].partition("m")[0])


def _failed(calls: Any, silent: bool = False) -> str:
    """Return how many calls failed of how many, until when, and how long a client had no success."""
    text = f"{calls['failed']:,} of {calls['calls']:,}"
    if calls["failed"]:
        text += f", {calls['failing_s']:.0f} s"
    return f"{text}; {calls['silent_s']:.0f} s" if silent else text


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {"cluster_faults": faults}
