"""How well does each linking method do on linked-pages, per language and variant?

Every page of a language is linked (as by `linker link`), against all English pages; the test links are judged. Each row
records what the method was given. Nothing here uses how the variants were cut.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import KeptRows, parse_options, record, shared_data
from linker.corpora.dictionaries import Dictionary, read_dictionary
from linker.crosslingual.methods import link
from linker.crosslingual.options import Options
from linker.crosslingual.pages.pages import Pages, read_pages
from linker.crosslingual.scoring.candidates import Candidates
from linker.crosslingual.task import Task, read_links

LANGUAGES = ("fr", "de", "ru", "tr", "zh")
PIVOTS = {"fr": "de", "de": "fr", "ru": "fr", "tr": "fr", "zh": "fr"}
DATA = shared_data() / "linked-pages"


@cache
def pages_of(variant: str, code: str) -> Pages:
    return read_pages(DATA / variant / f"{code}.jsonl.gz")


@cache
def dictionary_of(code: str) -> Dictionary:
    return read_dictionary(shared_data() / "dictionaries" / f"{code}-en.tsv.gz")


def systems(variant: str, code: str, encoder: str | None) -> Iterator[tuple[str, str, Task]]:
    """Yield name, method and task of every system."""
    source, target = pages_of(variant, code), pages_of(variant, "en")
    third = pages_of(variant, PIVOTS[code])
    plain = Task(source, target)
    train = read_links(DATA / "qrels" / f"{code}.train.txt", source, target)
    pivoted = replace(
        plain,
        pivot=third,
        pivot_links=read_links(DATA / "qrels" / f"{PIVOTS[code]}.train.txt", third, target),
    )
    words = replace(plain, dictionaries=(dictionary_of(code),))
    yield "hapax, pigeonhole", "hapax", plain
    yield (
        "hapax with edges, pigeonhole",
        "hapax",
        replace(plain, options=Options(keep_edges=True)),
    )
    yield f"pivot {PIVOTS[code]}, filter", "pivot", pivoted
    yield f"pivot {PIVOTS[code]}, boost", "pivot", replace(pivoted, options=Options(pivot_mode="boost"))
    yield "binary M", "dictionary", replace(words, options=Options(weighting="binary", margin=False))
    yield (
        "tf-idf cosine",
        "dictionary",
        replace(words, options=Options(weighting="tfidf-cosine", margin=False)),
    )
    yield "idf-M", "dictionary", replace(words, options=Options(margin=False))
    yield "idf-M, margin", "dictionary", words
    yield "idf-M, margin, one-to-one", "dictionary", replace(words, one_to_one=True)
    yield (
        "idf-M, whole dictionary, margin",
        "dictionary",
        replace(words, options=Options(whole_dictionary=True)),
    )
    yield "idf-M, links, margin", "dictionary", replace(plain, train=train)
    yield "idf-M, dictionary and links, margin", "dictionary", replace(words, train=train)
    if encoder:
        yield f"{encoder}, margin", "encoder", replace(plain, encoder=encoder)


def judge(candidates: Candidates, source: Pages, target: Pages, code: str) -> dict[str, Any]:
    """Return measures over all test pages, of the first five targets of each."""
    gold = read_links(DATA / "qrels" / f"{code}.test.txt", source, target)
    ranked = candidates.cut(5).targets[gold[:, 0]]
    hits = ranked == gold[:, 1:2]
    reciprocal = (hits / np.arange(1, hits.shape[1] + 1)).sum(axis=1)
    return {
        "queries": len(gold),
        "coverage": round(float((ranked[:, 0] >= 0).mean()), 4),
        "mrr": round(float(reciprocal.mean()), 4),
        "success_1": round(float(hits[:, 0].mean()), 4),
        "success_5": round(float(hits.any(axis=1).mean()), 4),
    }


def main() -> None:
    options = parse_options(
        __doc__,
        languages=",".join(LANGUAGES),
        variants="hard,masked",
        encoder=(str | None, "also link by this encoder"),
        rows=(Path | None, "keeps rows between runs"),
    )
    rows = KeptRows(options.rows)
    for variant in options.variants.split(","):
        for code in options.languages.split(","):
            for name, method, task in systems(variant, code, options.encoder):
                if rows.has(variant=variant, language=code, system=name):
                    continue
                start = time.process_time()
                links = link(task, method)
                row = {"variant": variant, "language": code, "system": name, "method": method}
                row |= judge(links.candidates, task.source, task.target, code)
                row["cpu_s"] = round(time.process_time() - start, 1)
                rows.keep(row)
            record("linked_pages", {"rows": rows, "pivots": PIVOTS})


if __name__ == "__main__":
    main()
