"""What does building an index cost, compared with its libraries? Documents per CPU-second and peak memory.

`python -m benchmarks.index_build [--work FOLDER]` → benchmarks/results/index_build.json. Target: the engine costs
at most 1.15 times the CPU time of tantivy and faiss called directly. Each build runs in its own process, warmed up on
50 documents; engine and library take turns. The ratio is the median of several rounds, since consecutive builds share
the noise of the machine. FAISS uses one thread.

The engine's build is the whole command (`linker.engine.building.build`): reading and checking the file, BM25, the
document store, vectors, checksums, fsync. The libraries' build reads the same file, indexes it and commits to disk; it
stores no documents. Vectors are computed beforehand, so neither includes an encoder's time.
"""

import os
import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.support import direct
from benchmarks.support.common import Cost, in_child
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.passages import OPTIONS, Data, Precomputed, first, prepare

Build = Callable[..., object]


def _fresh(out: Path) -> Path:
    shutil.rmtree(out, ignore_errors=True)
    return out


def engine(corpus: Path, out: Path, kind: str = "none", vectors: Path | None = None) -> None:
    from linker.engine import building

    encoder = Precomputed(np.load(vectors, mmap_mode="r")) if vectors else None
    options = (
        building.BuildOptions(encoder="precomputed", vectors=kind) if encoder else building.BuildOptions()
    )
    with mock.patch.object(building, "load_encoder", lambda _name, **_: encoder):
        building.build([corpus], _fresh(out), options)


def tantivy(corpus: Path, out: Path) -> None:
    direct.build_tantivy(corpus, _fresh(out))


def bm25s(corpus: Path, out: Path) -> None:
    direct.build_bm25s(corpus, _fresh(out))


def libraries(corpus: Path, out: Path, kind: str, vectors: Path, rows: int) -> None:
    """Fill tantivy and faiss directly."""
    direct.build_tantivy(corpus, _fresh(out))
    direct.build_faiss(vectors, out / "index", kind, rows)


Variant = tuple[str, Build, Sequence[Any], Sequence[Any]]  # name, function, arguments, warm-up arguments


def cases(data: Data, work: Path, sentences: int, graph: int) -> dict[str, tuple[int, int, list[Variant]]]:
    """Return (documents, repetitions, variants) by case; a case's last variant is the underlying library."""
    out, warm = work / "out", work / "warm"
    articles, few = (data.articles, out), (data.few_articles, warm)
    built: dict[str, tuple[int, int, list[Variant]]] = {
        "bm25, articles": (19_125, 3, [
            ("engine", engine, articles, few),
            ("tantivy", tantivy, articles, few),
        ]),
        "bm25s, articles": (19_125, 1, [("bm25s", bm25s, articles, few)]),
    }  # fmt: skip
    for kind, rows, repeats in (("flat", sentences, 3), ("hnsw", graph, 2)):
        corpus = data.sentences if rows == sentences else first(data.sentences, rows)
        few_of = (data.few_sentences, warm, kind, data.vectors)
        built[f"hybrid with {kind}, sentences"] = (rows, repeats, [
            ("engine", engine, (corpus, out, kind, data.vectors), few_of),
            ("tantivy + faiss", libraries, (corpus, out, kind, data.vectors, rows), (*few_of, 50)),
        ])  # fmt: skip
    return built


def measure(documents: int, repeats: int, variants: list[Variant]) -> dict[str, Any]:
    """Run the variants in turn; return each one's least cost, and the median of its ratios to the last one's."""
    costs: dict[str, list[Cost]] = {name: [] for name, *_ in variants}
    for _ in range(repeats):
        for name, build, args, warm in variants:
            costs[name].append(in_child(build, args, warm))
    below = [cost.cpu_s for cost in costs[variants[-1][0]]]
    results = {}
    for name, found in costs.items():
        best = min(found, key=lambda c: c.cpu_s)
        ratios = [cost.cpu_s / least for cost, least in zip(found, below, strict=True)]
        results[name] = {
            **asdict(best),
            "documents_per_cpu_s": round(documents / best.cpu_s),
            "ratio": round(statistics.median(ratios), 3),
        }
    return results


@benchmark(**OPTIONS)
def measured(options: Arguments) -> Results | None:
    """Build each case's index by all its variants."""
    os.environ["OMP_NUM_THREADS"] = "1"
    data = prepare(options.work, options.sentences)
    results: Results = {}
    for name, (documents, repeats, variants) in cases(
        data, options.work, options.sentences, options.graph
    ).items():
        if options.only in name:
            results[name] = {"documents": documents, **measure(documents, repeats, variants)}
            for variant, *_ in variants:
                print(f"{name:<32} {variant:<16}", results[name][variant], flush=True)
    return None if options.only else results
