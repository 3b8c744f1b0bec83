"""Do links through a third language help? German to French: linked directly, through English, and by both combined.

`auto` links de-en, fr-en and de-fr of linked-pages (hard) from training links alone; then `linker triangulate`
composes de-fr from the first two, and joins all three. Training links count as known in both. Every system is
evaluated on the test pages of the pair, as in benchmarks/auto_link.py; links of de-fr go through the English pages,
training links through training pages only.

    python -m benchmarks.triangles [--languages de,fr] [--method auto]
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.auto_link import certainty, links_of, measures, pages_of, task_of
from benchmarks.support.harness import WORK, Arguments, Commas, Results, benchmark
from indexes.dtypes import Int64Array
from linker.cli.commands.triangulating import triangulate
from linker.crosslingual.runs import link_and_write
from linker.crosslingual.task import Task

Run = Mapping[str, Mapping[str, float]]


def linked_pair(pair: str, system: str, folder: Path) -> tuple[str, str]:
    """Link a pair, and return its run and its known links as `triangulate` names them."""
    method, task = task_of(system, "hard", pair.removesuffix("-en"))
    if not pair.endswith("-en"):
        task = replace(task, train=_without_test_pages(task, pair))
    run, known = folder / f"{pair}.run", folder / f"{pair}.qrels"
    link_and_write(task, method, run, k=5, name=pair)
    lines = (f"{task.source.ids[s]} 0 {task.target.ids[t]} 1\n" for s, t in task.train.tolist())
    known.write_text("".join(lines), encoding="utf-8")
    return f"{pair}={run}", f"{pair}={known}"


def _without_test_pages(task: Task, pair: str) -> Int64Array:
    """Return the training links whose target is not a test page of its own pair with English.

    The links go through the English pages: with such targets, a triangle would close over a test link.
    """
    other = pair.partition("-")[2]
    english = pages_of("hard", "en")
    tested = links_of(other, "test", task.target, english)[:, 0]
    return task.train[~np.isin(task.train[:, 1], tested)]


def judge(run: Run, pair: str) -> dict[str, Any]:
    """Evaluate the top five targets of the pair's test pages, reversed if the run is."""
    code = pair.removesuffix("-en")
    _, task = task_of("auto: links", "hard", code)
    gold = links_of(code, "test", task.source, task.target)
    hits, first = np.zeros((len(gold), 5), dtype=bool), np.zeros(len(gold))
    for i, (s, t) in enumerate(gold.tolist()):
        scores = run.get(task.source.ids[s], {})
        for place, target in enumerate(list(scores)[:5]):
            hits[i, place] = target == task.target.ids[t]
        first[i] = next(iter(scores.values()), 0.0)
    row = measures(hits) | {"coverage": round(float((first > 0).mean()), 4)}
    del row["success_5"]
    return row | certainty(first.clip(0, 1), hits[:, 0])


@benchmark(languages=Commas(("de", "fr")), system="auto: links", work=WORK)
def linked_both_ways(options: Arguments) -> Results:
    one, other = options.languages
    pairs = (f"{one}-en", f"{other}-en", f"{one}-{other}")
    start = time.process_time()
    named = {pair: linked_pair(pair, options.system, options.work) for pair in pairs}
    runs, known = ([named[pair][i] for pair in pairs] for i in (0, 1))
    everything = triangulate(runs, known=known)
    direct = [
        triangulate([run], known=[links]).runs[p] for p, run, links in zip(pairs, runs, known, strict=True)
    ]
    through = triangulate(runs[:2], known=known[:2]).runs.get(pairs[2], {})
    answers = [
        *(("direct", pair, run) for pair, run in zip(pairs, direct, strict=True)),
        ("through", pairs[2], through),
        *(("both", pair, everything.runs[pair]) for pair in pairs),
    ]
    rows = [{"system": system, "pair": pair, **judge(run, pair)} for system, pair, run in answers]
    print(*rows, sep="\n", flush=True)
    sizes = [len(c.pages) for c in everything.clusters]
    counts = {str(size): sizes.count(size) for size in sorted(set(sizes))}
    cpu = round(time.process_time() - start, 1)
    return {"system": options.system, "rows": rows, "clusters": counts, "cpu_s": cpu}
