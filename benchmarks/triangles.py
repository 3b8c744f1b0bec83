"""Do links through a third language help? German to French: linked directly, through English, and by both.

`auto` links de-en, fr-en and de-fr of linked-pages (hard) from training links alone; then `linker triangulate` composes
de-fr from the first two, and joins all three. Training links count as known in both. Every system is judged on the test
pages of the pair, as benchmarks/auto_link.py judges them; links of de-fr go through the English pages, those for
training through training pages only.

    python -m benchmarks.triangles [--languages de,fr] [--method auto]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.auto_link import links_of, pages_of, task_of
from benchmarks.support.absent import calibration_error
from benchmarks.support.common import parse_options, record
from indexes.dtypes import Int64Array
from linker.cli.commands import triangulate
from linker.crosslingual.runs import linked
from linker.crosslingual.task import Task

SURE = 0.9
Run = Mapping[str, Mapping[str, float]]


def linked_pair(pair: str, system: str, folder: Path) -> tuple[str, str]:
    """Link a pair, and return its run and its known links as `triangulate` names them."""
    method, task = task_of(system, "hard", pair.removesuffix("-en"))
    if not pair.endswith("-en"):
        task = replace(task, train=_without_test_pages(task, pair))
    run, known = folder / f"{pair}.run", folder / f"{pair}.qrels"
    linked(task, method, run, k=5, name=pair)
    lines = (f"{task.source.ids[s]} 0 {task.target.ids[t]} 1\n" for s, t in task.train.tolist())
    known.write_text("".join(lines), encoding="utf-8")
    return f"{pair}={run}", f"{pair}={known}"


def _without_test_pages(task: Task, pair: str) -> Int64Array:
    """Return the training links whose target is no test page of its own pair with English.

    They go through the English pages: with such targets, a triangle would close over a test link.
    """
    other = pair.partition("-")[2]
    english = pages_of("hard", "en")
    tested = links_of(other, "test", task.target, english)[:, 0]
    return task.train[~np.isin(task.train[:, 1], tested)]


def judge(run: Run, pair: str) -> dict[str, Any]:
    """Judge the first five targets of the pair's test pages, turned round where the run is."""
    code = pair.removesuffix("-en")
    _, task = task_of("auto: links", "hard", code)
    gold = links_of(code, "test", task.source, task.target)
    ranks, first = np.zeros(len(gold)), np.zeros(len(gold))
    for i, (s, t) in enumerate(gold.tolist()):
        found = run.get(task.source.ids[s], {})
        order = list(found)[:5]
        if task.target.ids[t] in order:
            ranks[i] = 1 / (1 + order.index(task.target.ids[t]))
        first[i] = next(iter(found.values()), 0.0)
    right, sure = ranks == 1, first >= SURE
    return {
        "queries": len(gold),
        "coverage": round(float((first > 0).mean()), 4),
        "success_1": round(float(right.mean()), 4),
        "mrr": round(float(ranks.mean()), 4),
        "ece": round(calibration_error(first.clip(0, 1), right), 4),
        "sure_share": round(float(sure.mean()), 4),
        "sure_precision": round(float(right[sure].mean()), 4) if sure.any() else None,
    }


def main() -> None:
    options = parse_options(__doc__, languages="de,fr", system="auto: links")
    one, other = options.languages.split(",")
    pairs = (f"{one}-en", f"{other}-en", f"{one}-{other}")
    start = time.process_time()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        named = {pair: linked_pair(pair, options.system, Path(name)) for pair in pairs}
        known = [named[pair][1] for pair in pairs]
        systems = {
            "direct": [triangulate([named[pair][0]], known=[named[pair][1]]).runs[pair] for pair in pairs],
            "through": [
                triangulate([named[pair][0] for pair in pairs[:2]], known=known[:2]).runs.get(pair, {})
                for pair in pairs
            ],
        }
        everything = triangulate([named[pair][0] for pair in pairs], known=known)
        systems["both"] = [everything.runs[pair] for pair in pairs]
        for system, runs in systems.items():
            for pair, run in zip(pairs, runs, strict=True):
                if system != "through" or pair == pairs[2]:
                    rows.append({"system": system, "pair": pair, **judge(run, pair)})
                    print(rows[-1], flush=True)
        sizes = [len(c.pages) for c in everything.clusters]
    counts = {str(size): sizes.count(size) for size in sorted(set(sizes))}
    cpu = round(time.process_time() - start, 1)
    record("triangles", {"system": options.system, "rows": rows, "clusters": counts, "cpu_s": cpu})


if __name__ == "__main__":
    main()
