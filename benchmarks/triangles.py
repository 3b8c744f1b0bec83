"""Do links through other languages help? Each pair linked directly, through English, and by all paths combined.

`auto` links all pairs of English and the languages of linked-pages (hard) from training links alone, and the pairs with
English also with a dictionary, which the others lack; then `linker triangulate` composes the pairs without English from
those with it, and joins everything. Training links count as known in both. Every pair is evaluated on its test pages,
as in benchmarks/auto_link.py; links between two other languages go through the English pages, training links through
training pages only. `others`: the mean of the pairs without English.

    python -m benchmarks.triangles [--languages de,fr]
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.auto_link import LANGUAGES, certainty, links_of, measures, pages_of, task_of
from benchmarks.support.harness import WORK, Arguments, Commas, Results, benchmark
from indexes.dtypes import Int64Array
from linker.cli.commands.triangulating import triangulate
from linker.crosslingual.runs import link_and_write
from linker.crosslingual.task import Task

LINKS = "auto: links"
Run = Mapping[str, Mapping[str, float]]


def linked_pair(pair: str, system: str, folder: Path) -> tuple[str, str]:
    """Link a pair, and return its run and its known links as `triangulate` names them."""
    method, task = task_of(system if pair.endswith("-en") else LINKS, "hard", pair.removesuffix("-en"))
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
    _, task = task_of(LINKS, "hard", code)
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


def mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean of each figure, of all queries for their number; a precision without sure links is left out."""
    figures = {name: [row[name] for row in rows if row[name] is not None] for name in rows[0]}
    means = {name: round(float(np.mean(values)), 4) for name, values in figures.items() if values}
    return means | {"queries": sum(row["queries"] for row in rows)}


def _joined(linked: Mapping[str, tuple[str, str]], pairs: Iterable[str]) -> Mapping[str, Run]:
    runs, known = zip(*(linked[pair] for pair in pairs), strict=True)
    return triangulate(runs, known=known).runs


@benchmark(languages=Commas(LANGUAGES), work=WORK)
def linked_all_ways(options: Arguments) -> Results:
    english = [f"{code}-en" for code in options.languages]
    others = [f"{one}-{other}" for one, other in combinations(options.languages, 2)]
    start = time.process_time()
    between = {pair: linked_pair(pair, LINKS, options.work) for pair in others}
    rows: list[dict[str, Any]] = []
    for given in (LINKS, "auto: both"):
        linked = {pair: linked_pair(pair, given, options.work) for pair in english} | between
        runs = {"through": _joined(linked, english), "all": _joined(linked, linked)}
        figures = {
            (pair, how): judge(run, pair)
            for pair in linked
            for how, run in {
                "direct": _joined(linked, [pair])[pair],
                **{h: r[pair] for h, r in runs.items()},
            }.items()
            if how != "through" or pair in others
        }
        for how in ("direct", "through", "all"):
            figures["others", how] = mean([figures[pair, how] for pair in others])
        rows += [{"given": given, "pair": pair, "linked": how, **row} for (pair, how), row in figures.items()]
    print(*rows, sep="\n", flush=True)
    return {"rows": rows, "cpu_s": round(time.process_time() - start, 1)}
