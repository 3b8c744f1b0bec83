"""How well does each linking method do on linked-pages, per language and variant?

Every page of a language is linked (as by `linker link`), against all English pages; the test links are judged. Each row
records what the method was given. Nothing here uses knowledge of how the variants were made.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from benchmarks.auto_link import dictionaries_of, judge_targets, links_of, pages_of
from benchmarks.support.harness import ROWS, Arguments, Commas, Results, benchmark
from linker.crosslingual.methods import link
from linker.crosslingual.options import Options
from linker.crosslingual.task import Task

LANGUAGES = ("fr", "de", "ru", "tr", "zh")
PIVOTS = {"fr": "de", "de": "fr", "ru": "fr", "tr": "fr", "zh": "fr"}


def systems(variant: str, code: str, encoder: str | None) -> Iterator[tuple[str, str, Task]]:
    """Yield name, method and task of every system."""
    source, target = pages_of(variant, code), pages_of(variant, "en")
    third = pages_of(variant, PIVOTS[code])
    plain = Task(source, target)
    train = links_of(code, "train", source, target)
    pivoted = replace(plain, pivot=third, pivot_links=links_of(PIVOTS[code], "train", third, target))
    words = replace(plain, dictionaries=dictionaries_of(code)[:1])
    yield "hapax, pigeonhole", "hapax", plain
    yield "hapax with edges, pigeonhole", "hapax", replace(plain, options=Options(keep_edges=True))
    yield f"pivot {PIVOTS[code]}, filter", "pivot", pivoted
    yield f"pivot {PIVOTS[code]}, boost", "pivot", replace(pivoted, options=Options(pivot_mode="boost"))
    yield "binary M", "dictionary", replace(words, options=Options(weighting="binary", margin=False))
    cosine = Options(weighting="tfidf-cosine", margin=False)
    yield "tf-idf cosine", "dictionary", replace(words, options=cosine)
    yield "idf-M", "dictionary", replace(words, options=Options(margin=False))
    yield "idf-M, margin", "dictionary", words
    yield (
        "idf-M, margin, one-to-one",
        "dictionary",
        replace(words, options=replace(words.options, links="one-to-one")),
    )
    yield (
        "idf-M, whole dictionary, margin",
        "dictionary",
        replace(words, options=Options(whole_dictionary=True)),
    )
    yield "idf-M, links, margin", "dictionary", replace(plain, train=train)
    yield "idf-M, dictionary and links, margin", "dictionary", replace(words, train=train)
    if encoder:
        yield f"{encoder}, margin", "encoder", replace(plain, encoder=encoder)


@benchmark(
    languages=Commas(LANGUAGES),
    variants=Commas(("hard", "masked")),
    encoder=(str | None, "also link by this encoder"),
    rows=ROWS,
)
def linked(options: Arguments) -> Results:
    for named in product(options.variants, options.languages):
        for name, method, task in systems(*named, options.encoder):
            row = {**dict(zip(("variant", "language"), named, strict=True)), "system": name}
            if options.rows.has(**row):
                continue
            start = time.process_time()
            links = link(task, method)
            row |= {"method": method, **judge_targets(links.candidates, task, named[1])[0]}
            row["cpu_s"] = round(time.process_time() - start, 1)
            options.rows.keep(row)
    return {"rows": options.rows, "pivots": PIVOTS}
