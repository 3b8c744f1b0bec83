"""The four systems of BUCC 2015 on linked-pages, variant `hard`, beside their published figures (methods A to D).

`python -m benchmarks.published_bucc --rows FILE` links every page of each language to all English pages, judges the
test links, and keeps each row in FILE as it is computed. Published figures count a page without an answer as 0, as ours
do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.auto_link import judge, task_of
from benchmarks.linked_pages import DATA, PIVOTS, pages_of, systems
from benchmarks.support.common import KeptRows, parse_options, record
from benchmarks.support.published import row, table
from indexes.dtypes import Int64Array
from linker.crosslingual.methods import link
from linker.crosslingual.task import Task, read_links

LANGUAGES = ("fr", "de", "zh", "ru", "tr")
NAMES = {
    "LINA.p": "hapax, pigeonhole",
    "LINA.cl": "pivot {pivot}, filter",
    "LINA.cl, unsupported pairs kept": "pivot {pivot}, boost",
    "CCNUNLP": "binary M",
    "translated queries": "tf-idf cosine",
}
TOPICS = {"AUT, variational topics": "variational", "AUT, Gibbs sampling": "gibbs"}
MEASURES = {"coverage": "coverage", "MRR": "mrr", "S@1": "success_1", "S@5": "success_5"}
PUBLISHED = {
    ("LINA.p", "fr"): (1.0, 0.329, 0.300, 0.374),
    ("LINA.p", "de"): (0.998, 0.289, 0.249, 0.354),
    ("LINA.cl", "fr"): (0.686, 0.405, 0.396, 0.416),
    ("LINA.cl", "de"): (0.624, 0.388, 0.379, 0.399),
    ("CCNUNLP", "fr"): (None, 0.669, 0.607, 0.764),
    ("CCNUNLP", "zh"): (None, 0.769, 0.710, 0.861),
}
WHY = {
    "LINA.p": "manual pages keep commands and names in common; `hard` was cut until the figures of French were alike",
    "LINA.cl": "every link of the pivot, {pivot}, is known, as there; manual pages in place of Wikipedia's",
    "LINA.cl, unsupported pairs kept": "as above, but support through the pivot only adds to a score",
    "CCNUNLP": "translations in place of comparable pages; MUSE, small in zh, in place of the authors' dictionary",
    "translated queries": "the page's tf-idf vector, each word's weight shared among its translations; then the cosine",
    "AUT, variational topics": "the published runs had a bug, by their authors' word, and stayed at .047 or less",
    "AUT, Gibbs sampling": "as above; sampled topics, as in Mimno et al. (2009), and everything else the same",
}


def every_link(pivot: str) -> Int64Array:
    """Return the links of a language's training and test pages, which the paper had: int64 [l, 2]."""
    pages = pages_of("hard", pivot), pages_of("hard", "en")
    return np.concatenate(
        [read_links(DATA / "qrels" / f"{pivot}.{split}.txt", *pages) for split in ("train", "test")]
    )


def tasks(code: str) -> Iterator[tuple[str, str, Task]]:
    """Yield name, method and task of every system for a language."""
    known = {name: (method, task) for name, method, task in systems("hard", code, None)}
    for name, system in NAMES.items():
        method, task = known[system.format(pivot=PIVOTS[code])]
        if task.pivot:
            task = replace(task, pivot_links=every_link(PIVOTS[code]))
        yield name, method, task
    method, task = task_of("cascade: links", "hard", code)
    for name, topics in TOPICS.items():
        yield name, method, replace(task, options=replace(task.options, topics=topics))  # type: ignore[arg-type]


def main() -> None:
    options = parse_options(__doc__, languages=",".join(LANGUAGES), systems=[*NAMES, *TOPICS], rows=Path)
    rows = KeptRows(options.rows)
    for code in options.languages.split(","):
        for name, method, task in tasks(code):
            if name in options.systems and not rows.has(system=name, language=code):
                start = time.process_time()
                found = {"system": name, "language": code, **judge(link(task, method), task, code)}
                found["cpu_s"] = round(time.process_time() - start, 1)
                rows.keep(found)
    record(
        "published_bucc", {"tables": report({(r["system"], r["language"]): r for r in rows}), "rows": rows}
    )


def report(rows: dict[tuple[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one table per language."""
    tables = []
    for code in dict.fromkeys(language for _, language in rows):
        found = {name: rows[name, code] for name in (*NAMES, *TOPICS) if (name, code) in rows}
        shown = []
        for name, r in found.items():
            published = dict(zip(MEASURES, PUBLISHED.get((name, code), ()), strict=False))
            here = {measure: float(r[key]) for measure, key in MEASURES.items()}
            shown.append(row(name, published, here, WHY[name].format(pivot=PIVOTS[code])))
        queries = max(r["queries"] for r in found.values())
        tables.append(table(f"{code} → en: {queries:,} pages", list(MEASURES), shown))
    return tables


if __name__ == "__main__":
    main()
