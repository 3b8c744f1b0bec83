"""Compares results from an index on a cluster with its acknowledged writes: losses and errors.

A document must be found by a search that begins after its addition was acknowledged and ends before its deletion was
sent; it must not be found by a search that begins after its deletion was acknowledged. In between, and if a call
failed, either is correct. Documents never sent must never be found.
"""

import collections
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.support.cluster_clients import batch, expected, standing

Event = Mapping[str, Any]
NEVER = float("inf")


class Life(NamedTuple):
    """The times at which a document's addition and deletion were sent and acknowledged; NEVER if they were not."""

    sent: float = NEVER
    safe: float = NEVER
    going: float = NEVER
    gone: float = NEVER


def lives(events: Iterable[Event]) -> dict[str, Life]:
    """Return the `Life` of each document that the writers sent."""
    known: dict[str, Life] = {}
    for event in sorted(events, key=lambda e: e["begin"]):
        acknowledged = NEVER if "error" in event else event["end"]
        for id_ in event.get("ids", ()):
            life = known.get(id_, Life())
            if event["kind"] == "add":
                known[id_] = life._replace(sent=event["begin"], safe=acknowledged)
            else:
                known[id_] = life._replace(going=event["begin"], gone=acknowledged)
    return known


def verdict(event: Event, known: Mapping[str, Life]) -> dict[str, int]:
    """Return the number of documents that a search got wrong, by kind of error."""
    begin, end, query, answer = event["begin"], event["end"], event["query"], event["answer"]
    if query.startswith(("kind", "near")):
        return {"other_order": int(answer != expected(query))}
    name, _, turn = query.rpartition("x")
    ids = {d.id for d in batch(name, int(turn))[0]}
    found = set(answer)
    states = {id_: known.get(id_, Life()) for id_ in found}
    return {
        "missing": sum(known[i].safe < begin and known[i].going > end for i in ids - found if i in known),
        "deleted": sum(life.gone < begin for life in states.values()),
        "never_written": sum(life.sent > end for life in states.values()) + len(found - ids),
        "other_order": int(len(found) != len(answer)),
    }


def left_over(final: Mapping[str, str], known: Mapping[str, Life]) -> dict[str, int]:
    """Return lost and surplus documents at the end; `final` has the texts of all documents by id."""
    texts = {d.id: d.text for d in standing()[0]}
    must = {id_ for id_, life in known.items() if life.safe < NEVER and life.going == NEVER} | texts.keys()
    may = {id_ for id_, life in known.items() if life.gone == NEVER} | texts.keys()
    for id_ in known:
        name, turn, number = id_.split("-")
        texts[id_] = f"{name}x{turn} number{number}"
    return {
        "acknowledged_additions": sum(life.safe < NEVER for life in known.values()),
        "acknowledged_deletions": sum(life.gone < NEVER for life in known.values()),
        "lost": len(must - final.keys()),
        "resurrected": sum(id_ in known and id_ not in may for id_ in final),
        "never_written": len(final.keys() - texts.keys()),
        "other_text": sum(texts.get(id_, text) != text for id_, text in final.items()),
    }


def calls(events: Sequence[Event], since: float, until: float) -> dict[str, Any]:
    """Return the outcome of calls that ended between two times: how many failed, until when, and the longest wait.

    `failing_s`: from `since` to the end of the last failed call. `silent_s`: the longest time in which a client had
    no success, including its pauses.
    """
    here = [e for e in events if since <= e["end"] <= until]
    failed = [e for e in here if "error" in e]
    silent = 0.0
    for who in {e["who"] for e in events}:
        ends = sorted(e["end"] for e in here if e["who"] == who and "error" not in e)
        silent = max(silent, float(np.max(np.diff([since, *ends, until]))))
    good = [1000 * (e["end"] - e["begin"]) for e in here if "error" not in e]
    return {
        "calls": len(here),
        "failed": len(failed),
        "failing_s": round(max((e["end"] - since for e in failed), default=0.0), 1),
        "silent_s": round(silent, 1),
        "p50_ms": round(float(np.percentile(good, 50)), 1) if good else None,
    }


def errors(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return the distinct error texts, without their numbers, most frequent first."""
    counts = collections.Counter(
        (e["kind"], e["type"], re.sub(r"\d+(\.\d+)*", "N", e["error"])) for e in events if "error" in e
    )
    return [{"call": c, "type": t, "count": n, "text": x} for (c, t, x), n in counts.most_common()]


def wrong(events: Iterable[Event], known: Mapping[str, Life]) -> list[tuple[Event, dict[str, int]]]:
    """Return the wrong searches, each with its errors."""
    judged = ((e, verdict(e, known)) for e in events if e["kind"] == "search" and "error" not in e)
    return [(event, counts) for event, counts in judged if any(counts.values())]
