"""Measure the cost of ten million short documents with vectors, sharded on one machine.

`python -m benchmarks.ten_million --work FOLDER [--shards N] [--size N] [--stages N,…]` → benchmarks/results/
ten_million.json. The documents come from many_documents.py, with 256-dimensional vectors. Each shard is built by its
own process and kept in FOLDER with its figures, and so is each stage, so that a stopped run resumes where it stopped.
A stage opens the first shards together (`Engine.open`) and searches them with hybrid, BM25 and vectors (k = 10). The
queries are test statements, one at a time, with their vectors given; none of the statements is among the documents.

Single queries run on one core; `cpu` is the CPU time of a query, since other load lengthens wall-clock time (`wall`).
Clients are threads of one process that may use all cores; each sends its next query at once. Their waits can only be
measured by the clock, so other load on the machine affects these figures more than the others. Recall compares the
top ten by vectors with numpy's over all vectors.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import many_documents as many
from benchmarks.support.common import fresh, kept, percentiles
from benchmarks.support.harness import KEPT, Arguments, Commas, Results, benchmark
from benchmarks.support.meanvectors import mean_vectors
from benchmarks.support.passages import SEED, statements
from benchmarks.support.store_memory import memory, watched
from indexes.arrays import normalised
from indexes.interface import Matrix
from indexes.store import manifest as manifests
from linker.engine import Engine, building
from linker.engine.options import BuildOptions

K, QUERIES, WARM, DIM = 10, 100, 10, 256
CLIENTS, EACH = (1, 8, 32), 64  # concurrent clients, total queries of all of them
MODES = ("hybrid", "bm25", "dense")
CURVE = tuple(
    {"probed": 1 / cells, "refine": rows} for cells, rows in ((64, 1), (32, 2), (24, 2), (16, 2), (16, 4))
)
BLOCK = 1 << 15  # vectors that the oracle compares at a time
PARTS = {"documents.jsonl": "documents", "vectors.f32": "vectors", "ids.txt": "ids", "offsets.i64": "ids"}


def questions() -> tuple[list[str], Matrix]:
    """Return the queries' texts and vectors, float32 [n, DIM]; each statement serves as its own context."""
    texts = statements()[: QUERIES + WARM]
    return texts, normalised(np.hstack([mean_vectors(texts)] * 2))


def index_of(work: Path, number: int) -> Path:
    return work / f"shard-{number}.index"


def build_shard(work: Path, number: int, shards: int, size: int) -> dict[str, Any]:
    """Write a shard's documents and build its index; return the seconds and bytes of both."""
    texts, vectors = many.prepare(work, shards * size // many.REAL, statements())
    real = np.load(vectors, mmap_mode="r")
    start = time.process_time()
    shard = many.Shard(number, shards, size, texts.read_text(encoding="utf-8").split("\n"), real)
    corpus, matrix, ids = many.write(shard, size, DIM, work)
    made = time.process_time() - start
    del shard, real
    out = index_of(work, number)
    shutil.rmtree(out, ignore_errors=True)
    begin, cpu = time.perf_counter(), time.process_time()
    building.build([corpus], out, BuildOptions(vectors="auto", vectors_file=matrix, ids_file=ids))
    figures = {
        "made_cpu_s": round(made, 1),
        "build_cpu_s": round(time.process_time() - cpu, 1),
        "build_s": round(time.perf_counter() - begin, 1),
        "bytes": _bytes(out),
    }
    for file in (corpus, matrix, ids):
        file.unlink()
    return figures


def _bytes(index: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, file in manifests.load(index).files.items():
        part = PARTS.get(Path(name).name, Path(name).parts[0])
        found[part] = found.get(part, 0) + file.bytes
    return found


def segment_of(work: Path, number: int) -> Path:
    return next((index_of(work, number) / "segments").iterdir())


def vectors_of(work: Path, number: int) -> Matrix:
    """Return the mapped vectors of a shard."""
    file = segment_of(work, number) / "vectors.f32"
    rows: Matrix = np.memmap(file, dtype=np.float32, mode="r").reshape(-1, DIM)
    return rows


def top(shards: Sequence[Matrix], queries: Matrix) -> tuple[Any, Any]:
    """Return the rows, counted over all shards, and scores of each query's top K by cosine, in any order."""
    rows = np.zeros((len(queries), 0), dtype=np.int64)
    scores = np.zeros((len(queries), 0), dtype=np.float32)
    first = 0
    for vectors in shards:
        for low in range(0, len(vectors), BLOCK):
            new = queries @ vectors[low : low + BLOCK].T
            scores = np.hstack([scores, new])
            numbers = np.arange(first, first + new.shape[1])
            rows = np.hstack([rows, np.broadcast_to(numbers, new.shape)])
            best = np.argpartition(-scores, K - 1, axis=1)[:, :K]
            rows, scores = np.take_along_axis(rows, best, 1), np.take_along_axis(scores, best, 1)
            first += len(numbers)
    return rows, scores


def truth(work: Path, number: int, queries: Matrix) -> tuple[Any, Any]:
    """Return the ids and scores of a shard's top K by cosine, each [queries, K], by comparing all vectors."""

    def made() -> dict[str, Any]:
        rows, scores = top([vectors_of(work, number)], queries)
        ids = (segment_of(work, number) / "ids.txt").read_text().split("\n")
        return {"ids": np.array(ids)[rows], "scores": scores}

    found = kept(work / f"shard-{number}.truth.npz", made)
    return found["ids"], found["scores"]


def recall(engine: Engine, work: Path, shards: int, queries: Matrix) -> float:
    """Return the share of the top K by cosine that the engine finds."""
    parts = [truth(work, number, queries) for number in range(shards)]
    ids, scores = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    best = np.argsort(-scores, axis=1, kind="stable")[:, :K]
    right = np.take_along_axis(ids, best, 1)
    answers = engine.search(k=K, vectors=queries).hits
    shares = [
        len(set(hits.ids) & set(names)) / K for hits, names in zip(answers, right.tolist(), strict=True)
    ]
    return round(float(np.mean(shares)), 4)


def alone(ask: Callable[[int], object]) -> dict[str, Any]:
    """Return the cost of single queries on this thread."""
    for number in range(QUERIES, QUERIES + WARM):
        ask(number)
    cpu, wall = [], []
    for number in range(QUERIES):
        start, spent = time.perf_counter(), time.thread_time()
        ask(number)
        cpu.append(time.thread_time() - spent)
        wall.append(time.perf_counter() - start)
    return {"cpu": percentiles(cpu), "wall": percentiles(wall)}


def together(ask: Callable[[int], object], clients: int) -> dict[str, Any]:
    """Return the waits of many clients, each of which sends its next query at once."""
    waited: list[float] = []
    lock, ready = threading.Lock(), threading.Barrier(clients + 1)

    def run(first: int) -> None:
        ready.wait()
        for number in range(first, max(EACH, clients), clients):
            start = time.perf_counter()
            ask(number % QUERIES)
            with lock:
                waited.append(time.perf_counter() - start)

    with ThreadPoolExecutor(clients) as pool:
        done = [pool.submit(run, first) for first in range(clients)]
        ready.wait()
        begin, cpu = time.perf_counter(), time.process_time()
        for future in done:
            future.result()
    seconds = time.perf_counter() - begin
    return {
        **percentiles(waited),
        "per_s": round(len(waited) / seconds, 1),
        "cpu_ms": round(1000 * (time.process_time() - cpu) / len(waited), 2),
    }


def stage(work: Path, shards: int) -> dict[str, Any]:
    """Open this many shards and query them, in a separate process."""
    every = os.sched_getaffinity(0)
    texts, vectors = questions()
    directories = [index_of(work, number) for number in range(shards)]
    os.sched_setaffinity(0, sorted(every)[:1])
    found: dict[str, Any] = {}
    for name, verify in (("open", True), ("open_unverified", False)):
        start, cpu = time.perf_counter(), time.process_time()
        engine = Engine.open(directories, on_failure="fail", verify=verify)
        spent = time.process_time() - cpu
        found[name] = {"s": round(time.perf_counter() - start, 2), "cpu_s": round(spent, 2)}
    found |= {"documents": len(engine), "opened_mib": memory()}

    def asking(engine: Engine, mode: str) -> Callable[[int], object]:
        if mode == "dense":
            return lambda n: engine.search(k=K, vectors=vectors[n])
        return lambda n: engine.search(texts[n], K, mode=mode, vectors=vectors[n])  # type: ignore[arg-type] # a mode

    found["recall"] = recall(engine, work, shards, vectors[:QUERIES])
    found["alone"] = {mode: alone(asking(engine, mode)) for mode in MODES}
    found["in_use_mib"] = memory()
    list(engine.search(texts[0], K, vectors=vectors[0]).hits[0])  # the search reads documents by id
    found["read_mib"] = memory()
    os.sched_setaffinity(0, every)
    several = Engine.open(directories, on_failure="fail", verify=False) if len(every) > 1 else engine
    found["clients"] = {str(n): together(asking(several, "hybrid"), n) for n in CLIENTS}
    return found


def curve(work: Path, shards: int) -> dict[str, Any]:
    """Return the cost and recall of vectors alone in this many shards, by the settings of their cells."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    _, vectors = questions()
    engine = Engine.open([index_of(work, n) for n in range(shards)], on_failure="fail", verify=False)
    cells = [index.generator.settings for index in engine.collection.hybrid.vectors._shards]  # type: ignore[union-attr] # FaissIndex
    found: dict[str, Any] = {"documents": len(engine), "default": dict(cells[0]), "points": []}
    for settings in (*CURVE, found["default"]):
        for cell in cells:
            cell.update(settings)
        figures = alone(lambda n: engine.search(k=K, vectors=vectors[n]))
        share = recall(engine, work, shards, vectors[:QUERIES])
        found["points"].append({"settings": settings, "recall": share, **figures})
    return found


def measured_once(path: Path, make: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """Return the figures in a file; if it is missing, measure them first, in a separate process."""
    found: dict[str, Any] = kept(path, lambda: fresh(watched, make, *args))
    return found


def growth(stages: Sequence[dict[str, Any]]) -> dict[str, list[float]]:
    """Return the exponents with which the figures grow from each stage to the next: 1 is proportional."""
    sizes = np.log([s["documents"] for s in stages])
    figures = {mode: [s["alone"][mode]["cpu"]["p50_ms"] for s in stages] for mode in MODES}
    figures |= {
        "seconds to open": [s["open"]["cpu_s"] for s in stages],
        "seconds to open, unverified": [s["open_unverified"]["cpu_s"] for s in stages],
        "memory, anonymous": [s["in_use_mib"]["anonymous"] for s in stages],
    }
    return {
        name: np.round(np.diff(np.log(values)) / np.diff(sizes), 2).tolist()
        for name, values in figures.items()
    }


@benchmark(
    seed=SEED,
    work=KEPT,
    shards=10,
    size=(1_000_000, "documents in a shard"),
    stages=(Commas((1, 3, 10)), "how many shards are searched together"),
    build_only=(False, "build what is missing; nothing is recorded"),
)
def measured(options: Arguments) -> Results | None:
    work, shards, size = options.work, options.shards, options.size
    real = many.prepare(work, shards * size // many.REAL, statements())[0]
    stages, built = [], []
    for number in range(shards):
        built.append(measured_once(work / f"shard-{number}.json", build_shard, work, number, shards, size))
        if not options.build_only and number + 1 in options.stages:
            stages.append(measured_once(work / f"stage-{number + 1}.json", stage, work, number + 1))
    if options.build_only:
        return None
    about = {"size": size, "dimensions": DIM, "real": real.read_bytes().count(b"\n") + 1, "k": K}
    tuned = measured_once(work / f"curve-{shards}.json", curve, work, shards)
    found = {"shards": built, "stages": stages, "growth": growth(stages), "curve": tuned}
    return {**about, "queries": QUERIES, **found}
