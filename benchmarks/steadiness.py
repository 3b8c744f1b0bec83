"""How much do page ids, input order and the random seed affect the figures of `auto`?

Each renaming gives all pages new ids; each shuffle also reorders both collections and the known links; each seed
divides the known links into different folds. Everything else is as in benchmarks/auto_link.py: variant `hard`, all
test pages.

    python -m benchmarks.steadiness [--languages tr,zh] [--systems "auto: both"] [--renamings 10] [--shuffles 10]
                                    [--seeds 10] [--rows FILE]

`--rows` saves each run as it is computed, and runs that are already there are not recomputed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from benchmarks.auto_link import LANGUAGES, judge, task_of
from benchmarks.support.harness import ROWS, Arguments, Commas, Results, benchmark
from linker.crosslingual.methods import link
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.task import LinkingResult, Task

SYSTEMS = ("auto: both", "auto: links")
MEASURES = ("success_1", "mrr", "ece")
Row = dict[str, Any]


def renamed(
    task: Task, seed: int, shuffle: bool = True
) -> tuple[Task, list[np.ndarray[Any, np.dtype[np.int64]]]]:
    """Return the task with new ids (reordered, if `shuffle`) and the rows that its pages had: int64 [n], [m]."""
    rng = np.random.default_rng(seed)
    orders, sides = [], []
    for pages in (task.source, task.target):
        order = rng.permutation(len(pages)) if shuffle else np.arange(len(pages))
        ids = tuple(f"{n:08x}" for n in rng.choice(1 << 32, len(pages), replace=False))
        sides.append(Pages(ids, tuple(pages.texts[i] for i in order), pages.language))
        orders.append(order)
    places = [np.argsort(order) for order in orders]
    train = np.stack([place[task.train[:, i]] for i, place in enumerate(places)], axis=1)
    return replace(
        task, source=sides[0], target=sides[1], train=rng.permutation(train) if shuffle else train
    ), orders


def with_old_rows(result: LinkingResult, source: Any, target: Any) -> LinkingResult:
    """Return the result of a renamed task in the rows of the first task."""
    targets = np.full_like(result.candidates.targets, -1)
    scores = np.full_like(result.candidates.scores, -np.inf)
    valid = result.candidates.targets >= 0
    targets[source] = np.where(valid, target[result.candidates.targets], -1)
    scores[source] = result.candidates.scores
    return replace(result, candidates=replace(result.candidates, targets=targets, scores=scores))


def run(code: str, system: str, kind: str, number: int) -> Row:
    start = time.process_time()
    method, task = task_of(system, "hard", code)
    if kind in ("renaming", "shuffle"):
        other, orders = renamed(task, number, kind == "shuffle")
        result = with_old_rows(link(other, method), *orders)
    else:
        result = link(replace(task, options=replace(task.options, seed=number)), method)
    figures = judge(result, task, code)
    row = {"language": code, "system": system, "kind": kind, "number": number, "queries": figures["queries"]}
    return row | {m: figures[m] for m in MEASURES} | {"cpu_s": round(time.process_time() - start, 1)}


def spread(rows: list[Row]) -> list[Row]:
    """Return mean, minimum, maximum and standard deviation of each measure, by language, system and kind of run."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["language"], row["system"], row["kind"]), []).append(row)
    summary = []
    for (code, system, kind), members in groups.items():
        entry: Row = {"language": code, "system": system, "kind": kind, "runs": len(members)}
        entry["queries"] = members[0]["queries"]
        for measure in MEASURES:
            values = np.array([row[measure] for row in members])
            statistics = {"mean": values.mean(), "min": values.min(), "max": values.max(), "sd": values.std()}
            entry[measure] = {name: round(float(value), 4) for name, value in statistics.items()}
        summary.append(entry)
    return summary


@benchmark(languages=Commas(LANGUAGES), systems=[*SYSTEMS], renamings=10, shuffles=10, seeds=10, rows=ROWS)
def steadiness(options: Arguments) -> Results:
    for code, system in product(options.languages, options.systems):
        counts = {"renaming": options.renamings, "shuffle": options.shuffles, "seed": options.seeds}
        for kind, count in counts.items():
            for row in options.rows.missing(
                language=[code], system=[system], kind=[kind], number=range(count)
            ):
                options.rows.keep(run(code, system, kind, row["number"]))
    return {"spread": spread(options.rows), "runs": options.rows}
