"""What does a search cost, compared with the underlying libraries? Queries per CPU-second.

`python -m benchmarks.search [--work FOLDER]` → benchmarks/results/search.json. Target: the engine costs at most
1.15 times the CPU time of tantivy and faiss called directly. Both search the same data in one process, taking turns
batch by batch; the ratio is the median of several rounds; both return ids. FAISS uses one thread.

BM25: articles. Dense, hybrid: sentences with mean word vectors. FAISS is called in the fastest way for the batch
(with or without a matrix product), and for HNSW on the engine's graph with the engine's width; the direct hybrid
fuses by reciprocal ranks in pure Python. Queries are the test statements.
"""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import index_build
from benchmarks.support import direct
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.meanvectors import mean_vectors
from benchmarks.support.passages import OPTIONS, Data, Precomputed, first, prepare, statements
from indexes.interface import Matrix
from linker.engine.engine import Engine

BATCHES = {1: 150, 64: 640, 0: 10_000}  # batch size (0: all at once) → queries at most
K, REPEATS = 10, 5
Search = Callable[[Sequence[str], Matrix, int], Any]


def open_engine(folder: Path, queries: Sequence[str], vectors: Matrix) -> Engine:
    return Engine(folder, encoder=Precomputed(vectors, queries))


def open_text(corpus: Path, folder: Path) -> direct.DirectText:
    """Index a corpus with tantivy and open it."""
    shutil.rmtree(folder, ignore_errors=True)
    return direct.DirectText(folder, direct.build_tantivy(corpus, folder))


def pairs(work: Path, data: Data, queries: list[str], vectors: Matrix) -> dict[str, tuple[Search, Search]]:
    """Return, by case, the engine's search and the libraries'."""
    articles = open_engine(work / "articles", queries, vectors)
    flat = open_engine(work / "flat", queries, vectors)
    graph = open_engine(work / "hnsw", queries, vectors)
    articles_text = open_text(data.articles, work / "text-articles")
    ids = list(flat.collection.rows.ids)
    text = open_text(data.sentences, work / "text-sentences")
    exact = direct.DirectVectors(direct.build_faiss(data.vectors, work / "flat.faiss", "flat", len(ids)), ids)
    side: Any = graph.collection.hybrid.vectors  # candidates come from FAISS's own graph
    generator = side._generator
    approximate = direct.DirectVectors(generator._index, list(graph.collection.rows.ids))
    return {
        "bm25, articles": (
            lambda t, v, k: articles.search(t, k, mode="bm25"),
            lambda t, v, k: articles_text.search(t, k),
        ),
        "flat, sentences": (
            lambda t, v, k: flat.search(t, k, mode="dense"),
            lambda t, v, k: exact.search(v, k),
        ),
        "hnsw, sentences": (
            lambda t, v, k: graph.search(t, k, mode="dense"),
            lambda t, v, k: approximate.search(v, k, max(128, 2 * (k + max(16, k // 8)))),
        ),
        "hybrid with flat, sentences": (
            lambda t, v, k: flat.search(t, k, mode="hybrid"),
            lambda t, v, k: direct.direct_hybrid(text, exact, t, v, k, ids),
        ),
    }


def timed(sides: tuple[Search, Search], queries: list[str], vectors: Matrix, batch: int) -> list[float]:
    """Return both systems' CPU seconds per query; they take turns batch by batch, so that noise affects both."""
    spent = [0.0, 0.0]
    for number, place in enumerate(range(0, len(queries), batch)):
        part = slice(place, place + batch)
        for side in ((0, 1), (1, 0))[number % 2]:
            start = time.process_time()
            sides[side](queries[part], vectors[part], K)
            spent[side] += time.process_time() - start
    return [seconds / len(queries) for seconds in spent]


def compare(sides: tuple[Search, Search], queries: list[str], vectors: Matrix, batch: int) -> Any:
    """Return both systems' least cost, and the median of the rounds' ratios: each compares consecutive runs."""
    batch = batch or len(queries)
    rounds = [timed(sides, queries, vectors, batch) for _ in range(REPEATS)]
    ours, theirs = np.min(rounds, axis=0).tolist()
    ratios = sorted(a / b for a, b in rounds)
    return {
        "queries": len(queries),
        "engine_queries_per_cpu_s": round(1 / ours, 1),
        "direct_queries_per_cpu_s": round(1 / theirs, 1),
        "ratio": round(ratios[len(ratios) // 2], 3),
    }


def agreement(sides: tuple[Search, Search], queries: list[str], vectors: Matrix) -> float:
    """Return the share of the libraries' top ten that the engine also returns; tantivy rounds lengths to one byte."""
    ours, theirs = (search(queries, vectors, K) for search in sides)
    common = [len({*a.ids} & {*b}) / max(len(b), 1) for a, b in zip(ours.hits, theirs, strict=True)]
    return round(float(np.mean(common)), 4)


def bm25s_speed(data: Data, queries: list[str], work: Path) -> dict[str, Any]:
    """Return bm25s's queries per CPU-second on the articles, all at once: the peer with precomputed scores."""
    _, index = direct.build_bm25s(data.articles, work / "bm25s")
    start = time.process_time()
    index.retrieve(direct.bm25s_terms(queries), k=K, n_threads=1, show_progress=False)
    return {f"k={K}": round(len(queries) / (time.process_time() - start), 1)}


@benchmark(**OPTIONS)
def measured(options: Arguments) -> Results | None:
    os.environ["OMP_NUM_THREADS"] = "1"
    import faiss

    faiss.omp_set_num_threads(1)
    work = options.work
    data, queries = prepare(work, options.sentences), statements()
    vectors = mean_vectors(queries)
    for kind, corpus in (
        ("articles", data.articles),
        ("flat", data.sentences),
        ("hnsw", first(data.sentences, options.graph)),
    ):
        if not (work / kind / "manifest.json").exists():
            graph = ("none", None) if kind == "articles" else (kind, data.vectors)
            index_build.engine(corpus, work / kind, *graph)
    results: dict[str, Any] = {}
    for name, sides in pairs(work, data, queries, vectors).items():
        if options.only not in name:
            continue
        results[name] = {"same_hits": agreement(sides, queries, vectors)}
        for batch, most in BATCHES.items():
            found = compare(sides, queries[:most], vectors[:most], batch)
            results[name][f"batch={batch or 'all'}, k={K}"] = found
            print(f"{name:<28} batch {batch or 'all':>3}", found, flush=True)
    if options.only:
        return None
    results["bm25s, articles, all queries at once, queries_per_cpu_s"] = bm25s_speed(data, queries, work)
    return results
