"""How do `linker link`'s methods scale? Synthetic texts in two languages, 2k × 4k to 115k × 230k pages.

A page has about 300 words of its language's own vocabulary, drawn from one Zipf law, 40 names and numbers that both
languages write alike, drawn from another, and a few rare words and names that only its counterpart shares: the words
through a dictionary with three translations per word. Only `auto` is given known links, for up to 2,000 pages. Every
size and method runs in its own process, from texts in memory to the ranking; tokenising subprocesses count as well.

    python -m benchmarks.link_scale [--largest 115000] [--methods hapax,dictionary,auto] [--rows FILE]

`--rows` saves each row as it is computed, with its commit; rows that are already in the file are not recomputed. A
row's `load` is the mean load of the last five minutes: if more processes run than there are cores, `wall_s` means
little.
"""

import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import commit, fresh, memory
from benchmarks.support.harness import ROWS, Arguments, Commas, Results, benchmark
from indexes.dtypes import Int64Array
from linker.corpora.dictionaries import Dictionary
from linker.crosslingual.methods import link
from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.task import NO_LINKS, Task

VOCABULARY = 150_000
TRANSLATIONS = 3
WORDS, NAMES = 300, 40  # per page
OWN_WORDS, OWN_NAMES = 12, 6  # rare words and names that a page shares with its counterpart
SENTENCE = 15
KNOWN = 2000  # maximum number of known links; a quarter of the pages if that is fewer
SIZES = ((2_000, 4_000), (6_500, 13_000), (20_000, 40_000), (115_000, 230_000))
LETTERS = "abcdefghijklmnoprstuvz"
SEED = 0


def vocabulary(first: str) -> list[str]:
    """Return words of six letters that begin with a given one."""
    digits = np.random.default_rng(SEED).permutation(22**4)[:VOCABULARY]
    return [first + "".join(LETTERS[d // 22**i % 22] for i in range(4)) + "a" for d in digits.tolist()]


def zipf(rng: np.random.Generator, shape: tuple[int, int]) -> Int64Array:
    """Draw ranks by the law of Zipf and Mandelbrot (shift 20)."""
    mass = 1 / (np.arange(1, VOCABULARY + 1) + 20)
    drawn = np.searchsorted(np.cumsum(mass / mass.sum()), rng.random(shape, np.float32))
    return np.minimum(drawn, VOCABULARY - 1)


def pages(n: int, code: str, seed: int, own_words: Int64Array, own_names: Int64Array) -> Pages:
    """Make n pages; `own_words` and `own_names` [n, …] are ranks of the rare words and names of each page."""
    rng = np.random.default_rng(seed)
    names = [name.capitalize() if i % 4 else str(1000 + i) for i, name in enumerate(vocabulary("k"))]
    words = np.array([*vocabulary(code[0]), *names], object)
    texts = []
    for begin in range(0, n, 2000):
        rows = slice(begin, min(begin + 2000, n))
        size = rows.stop - begin
        columns = np.concatenate(
            (
                zipf(rng, (size, WORDS)),
                own_words[rows],
                zipf(rng, (size, NAMES)) + VOCABULARY,
                own_names[rows] + VOCABULARY,
            ),
            axis=1,
        )
        texts += [text(words[row].tolist()) for row in rng.permuted(columns, axis=1)]
    return Pages(tuple(f"{code}{i:06}" for i in range(n)), tuple(texts), language(code))


def text(words: Sequence[str]) -> str:
    sentences = [" ".join(words[i : i + SENTENCE]) for i in range(0, len(words), SENTENCE)]
    return ".\n".join(sentences) + "."


def dictionary() -> Dictionary:
    """Translate each word as its counterpart and as two other words of similar frequency."""
    rng = np.random.default_rng(SEED)
    base = np.repeat(np.arange(VOCABULARY), TRANSLATIONS)
    other = base + rng.integers(-base // 4 - 3, base // 4 + 4)
    near = np.where(np.arange(base.size) % TRANSLATIONS == 0, base, np.clip(other, 0, VOCABULARY - 1))
    sources, targets = vocabulary("x"), vocabulary("y")
    pairs = tuple((sources[i], targets[j]) for i, j in zip(base.tolist(), near.tolist(), strict=True))
    return Dictionary(Path("made.tsv"), "tsv", pairs)


def task(method: str, n: int, m: int) -> tuple[Task, Int64Array]:
    """Return a task, and the target of each source page: int64 [n]."""
    rng = np.random.default_rng(SEED)
    own_words, own_names = (rng.integers(1000, VOCABULARY, (m, size)) for size in (OWN_WORDS, OWN_NAMES))
    gold = rng.permutation(m)[:n]
    source = pages(n, "xx", 1, own_words[gold], own_names[gold])
    target = pages(m, "yy", 2, own_words, own_names)
    links = np.stack([np.arange(n), gold], axis=1)[: min(KNOWN, n // 4)] if method == "auto" else NO_LINKS
    words = () if method == "hapax" else (dictionary(),)
    return Task(source, target, words, links), gold


def measure(method: str, n: int, m: int) -> dict[str, Any]:
    problem, gold = task(method, n, m)
    began, cpu = time.perf_counter(), _cpu()
    result = link(problem, method)
    seconds, cpu_seconds = time.perf_counter() - began, _cpu() - cpu
    candidates, load = result.candidates, os.getloadavg()[1]
    peak = memory("VmHWM") / 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    asked = np.setdiff1d(np.arange(n), problem.train[:, 0])
    return {
        "commit": commit()[:7],
        "method": method,
        "source_pages": n,
        "target_pages": m,
        "links": len(problem.train),
        "cpu_s": round(cpu_seconds, 1),
        "wall_s": round(seconds, 1),
        "load": round(load, 1),
        "cpu_ns_per_pair": round(cpu_seconds / n / m * 1e9, 2),
        "peak_gib": round(peak, 2),
        "largest_child_gib": round(children, 2),
        "success_1": round(float((candidates.targets[asked, 0] == gold[asked]).mean()), 4),
        "candidate_recall": result.metadata.get("candidate_recall"),
    }


def _cpu() -> float:
    """Return the CPU seconds of this process and of its child processes that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def growth(rows: Sequence[dict[str, Any]], method: str, last: int = 0) -> float | None:
    """Return the exponent b of CPU time ~ pairs^b, fitted by least squares on logarithms; None for one size.

    `last`: how many of the largest sizes are used for the fit, by default all.
    """
    points = [(r["source_pages"] * r["target_pages"], r["cpu_s"]) for r in rows if r["method"] == method]
    points = sorted(points)[-last:]
    if len(points) < 2:
        return None
    pairs, seconds = np.log(np.array(points, np.float64)).T
    return round(float(np.polyfit(pairs, seconds, 1)[0]), 3)


@benchmark(
    seed=SEED,
    largest=(20_000, "most source pages"),
    methods=Commas(("hapax", "dictionary", "auto")),
    rows=ROWS,
)
def linked(options: Arguments) -> Results:
    rows = options.rows
    for n, m in (sizes for sizes in SIZES if sizes[0] <= options.largest):
        for row in rows.missing(method=options.methods, source_pages=[n]):
            rows.keep(fresh(measure, row["method"], n, m))
    found = sorted({r["method"] for r in rows})
    exponents, at_end = ({method: growth(rows, method, last) for method in found} for last in (0, 2))
    return {"rows": rows, "exponents": exponents, "exponents_at_end": at_end}
