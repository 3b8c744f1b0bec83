"""Nodes of a cluster that die under clients: the counts of the fault benchmark, and one real fault."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.support import cluster_judge as judge
from benchmarks.support.cluster_clients import BATCH, batch, expected, standing
from tests import elastic_server, namespaces
from tests.helpers import ROOT


def add(turn: int, begin: float, end: float, **more: Any) -> dict[str, Any]:
    ids = [d.id for d in batch("a", turn)[0]]
    return {"who": "a", "kind": "add", "ids": ids, "begin": begin, "end": end, **more}


def delete(ids: list[str], begin: float, end: float, **more: Any) -> dict[str, Any]:
    return {"who": "a", "kind": "delete", "ids": ids, "begin": begin, "end": end, **more}


def search(answer: list[str], begin: float, end: float, query: str = "ax0") -> dict[str, Any]:
    return {"who": "r", "kind": "search", "query": query, "answer": answer, "begin": begin, "end": end}


ALL = add(0, 0, 0)["ids"]
FAILED = {"error": "no", "type": "E"}


@pytest.mark.parametrize(
    ("events", "answer", "begin", "end", "wrong"),
    [
        ([add(0, 1, 2)], ALL, 3, 4, {}),
        ([add(0, 1, 2)], ALL[1:], 3, 4, {"missing": 1}),
        ([add(0, 1, 2)], [], 1.5, 4, {}),  # it began before the addition was safe
        ([add(0, 1, 2)], ALL, 0, 0.5, {"never_written": BATCH}),
        ([add(0, 1, 2, **FAILED)], ALL[1:], 3, 4, {}),
        ([add(0, 1, 2), delete(ALL[:2], 3, 4)], ALL, 5, 6, {"deleted": 2}),
        ([add(0, 1, 2), delete(ALL[:2], 3, 4)], ALL, 3.5, 6, {}),
        ([add(0, 1, 2), delete(ALL[:2], 3, 4)], ALL[2:], 2.5, 3.5, {}),
        ([add(0, 1, 2), delete(ALL[:2], 3, 4, **FAILED)], ALL[1:], 5, 6, {}),
        ([add(0, 1, 2)], [*ALL, "a-1-0"], 3, 4, {"never_written": 2}),  # from another batch, and never sent
        ([add(0, 1, 2)], [*ALL, ALL[0]], 3, 4, {"other_order": 1}),
    ],
)
def test_an_answer_is_compared_with_what_was_acknowledged(
    events: list[dict[str, Any]], answer: list[str], begin: float, end: float, wrong: dict[str, int]
) -> None:
    counts = judge.verdict(search(answer, begin, end), judge.lives(events))
    assert {name: count for name, count in counts.items() if count} == wrong


def test_standing_documents_have_one_order() -> None:
    assert expected("kind3")[:3] == ["s3", "s10", "s17"]
    assert expected("near5")[0] == "s5"
    assert judge.verdict(search(expected("kind3"), 0, 1, "kind3"), {}) == {"other_order": 0}
    assert judge.verdict(search(expected("kind3")[::-1], 0, 1, "kind3"), {}) == {"other_order": 1}


def test_what_is_left_at_the_end_is_compared() -> None:
    known = judge.lives([add(0, 1, 2), delete(ALL[:2], 3, 4), add(1, 5, 6, **FAILED)])
    final = {d.id: d.text for d in [*standing()[0], *batch("a", 0)[0][2:]]}
    good = {"acknowledged_additions": BATCH, "acknowledged_deletions": 2}
    bad = {"lost": 0, "resurrected": 0, "never_written": 0, "other_text": 0}
    assert judge.left_over(final, known) == good | bad
    final |= {ALL[0]: "ax0 number0", "ghost": "boo", ALL[4]: "else"}
    del final[ALL[3]]
    counts = {"lost": 1, "resurrected": 1, "never_written": 1, "other_text": 1}
    assert judge.left_over(final, known) == good | counts


def test_failures_and_silence_are_counted() -> None:
    events = [search(ALL, t, t + 0.5) for t in (1, 2, 9)] + [{**search([], 3, 4.5), **FAILED}]
    calls = judge.calls(events, 0, 10)
    assert calls == {"calls": 4, "failed": 1, "failing_s": 4.5, "silent_s": 7.0, "p50_ms": 500.0}
    assert judge.errors(events) == [{"call": "search", "type": "E", "count": 1, "text": "no"}]


@pytest.mark.slow
def test_a_master_killed_under_clients_loses_nothing_and_shows_nothing_wrong() -> None:
    elastic_server.require(nodes=3)
    try:
        namespaces.check()
    except namespaces.NoNamespacesError as e:
        pytest.skip(str(e))
    command = [sys.executable, "-m", "benchmarks.cluster_faults", "--only", "killed", "--short", "--print"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stderr
    case = json.loads(done.stdout)["killed"]
    assert case["end"]["acknowledged_additions"] > 0
    assert {
        k: case["end"][k] for k in ("lost", "resurrected", "never_written", "other_text")
    } == dict.fromkeys(("lost", "resurrected", "never_written", "other_text"), 0)
    assert case["all"]["wrong"] == 0
    assert {e["type"] for e in case["errors"]} <= {"BackendUnavailableError", "PassingError", "NoMasterError"}
