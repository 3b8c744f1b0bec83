"""What do a million documents with vectors cost in linker, FAISS, LanceDB and tantivy, on one core?

`python -m benchmarks.million --work FOLDER` → benchmarks/results/million.json. LanceDB is not among the requirements:
`pip install lancedb`. The documents are the first shard of ten_million.py, with 256-dimensional vectors, and so are the
queries, whose vectors are given. Each system runs in its own process, on one core, and builds from vectors in a mapped
file, or from the texts. Settings that trade recall for time are chosen on other queries: the fastest with a recall of
the top ten of at least RECALL. linker's build stores the documents and indexes their texts and vectors; the other
systems' builds do only what the row names. `cpu` is the CPU time of all threads per query, `bytes` per document.
"""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from benchmarks.support import direct
from benchmarks.support.common import percentiles
from benchmarks.support.harness import KEPT, Arguments, Results, benchmark
from benchmarks.support.meanvectors import mean_vectors
from benchmarks.support.passages import SEED, statements
from benchmarks.ten_million import CURVE, DIM, QUERIES, WARM, K, build_shard, index_of, measured_once
from indexes.arrays import normalised
from indexes.interface import Matrix
from linker.engine import Engine

RECALL = 0.95
SHARDS, BLOCK, TRAINED = 10, 1 << 15, 100_000
Names = list[str] | list[int]
Search = Callable[[int], Names]  # the rows or ids of the top ten of a query
Settings = list[
    tuple[str, Callable[[], object]]
]  # from fast to slow: a name, and the function that sets them


@functools.cache
def questions() -> tuple[list[str], Matrix]:
    """Return the texts and vectors of the queries, after as many for the choice of settings."""
    texts = statements()[: 2 * QUERIES]
    return texts, normalised(np.hstack([mean_vectors(texts)] * 2))


def segment(work: Path) -> Path:
    return next((index_of(work, 0) / "segments").iterdir())


def vectors_of(work: Path) -> Matrix:
    rows: Matrix = np.memmap(segment(work) / "vectors.f32", dtype=np.float32, mode="r").reshape(-1, DIM)
    return rows


def texts_of(work: Path) -> Iterator[str]:
    with (segment(work) / "documents.jsonl").open("rb") as file:
        yield from (orjson.loads(line)["text"] for line in file)


def truth(work: Path) -> dict[str, Any]:
    """Return the rows of each query's top K by cosine, by comparing all vectors."""
    vectors, (_, queries) = vectors_of(work), questions()
    scores = np.concatenate(
        [queries @ vectors[low : low + BLOCK].T for low in range(0, len(vectors), BLOCK)], axis=1
    )
    return {"rows": np.argsort(-scores, axis=1, kind="stable")[:, :K].tolist()}


def size_of(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def measured_search(search: Search, right: list[list[Any]] | None, settings: Settings) -> dict[str, Any]:
    """Return the cost of a query, and the recall with the fastest settings that have enough on the other queries."""

    def recall(queries: range) -> float:
        assert right is not None
        return float(np.mean([len({*search(n)} & {*right[n]}) / K for n in queries]))

    figures: dict[str, Any] = {}
    for name, choose in settings:
        choose()
        share = recall(range(QUERIES))
        figures = {"settings": name, "recall_of_choice": round(share, 4)}
        if share >= RECALL:
            break
    seconds, queries = [], range(QUERIES, 2 * QUERIES)
    for number in range(WARM):
        search(number)
    for number in queries:
        start = time.process_time()
        search(number)
        seconds.append(time.process_time() - start)
    if right is not None:
        figures["recall"] = round(recall(queries), 4)
    return {**figures, "cpu": percentiles(seconds, 3)}


def one_core() -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    direct.faiss.omp_set_num_threads(1)


def system(name: str, work: Path, right: list[list[int]]) -> dict[str, Any]:
    """Build a system's index if it is missing, open it and search it."""
    one_core()
    path = work / f"{name}.index"
    build, opened = SYSTEMS[name]
    built: dict[str, Any] = {}
    if build is not None:
        shutil.rmtree(path, ignore_errors=True)
        start = time.process_time()
        build(work, path)
        built = {"build_cpu_s": round(time.process_time() - start, 1), "bytes": size_of(path)}
    questions()
    start, clock = time.process_time(), time.perf_counter()
    search, settings = opened(work, path)
    opening = {
        "open_cpu_s": round(time.process_time() - start, 2),
        "open_s": round(time.perf_counter() - clock, 2),
    }
    rows: list[list[Any]] | None = right if settings else None
    if name.startswith("linker") and settings:
        rows = [[f"0-{row}" for row in of_query] for of_query in right]
    return {**built, **opening, **measured_search(search, rows, settings)}


def opened_linker(work: Path, path: Path, mode: str) -> tuple[Search, Settings]:
    engine, (texts, vectors) = Engine.open(index_of(work, 0), verify=False), questions()
    if mode == "bm25":
        return lambda n: list(engine.search(texts[n], K, mode="bm25").hits[0].ids), []
    if mode == "hybrid":
        return lambda n: list(engine.search(texts[n], K, mode="hybrid", vectors=vectors[n]).hits[0].ids), []
    cells = engine.collection.hybrid.vectors.generator.settings  # type: ignore[union-attr] # FaissIndex
    points = [*({"probed": 1 / parts, "refine": 1} for parts in (512, 256, 128)), *CURVE, dict(cells)]
    return (
        lambda n: list(engine.search(k=K, vectors=vectors[n]).hits[0].ids),
        [(str(point), functools.partial(cells.update, point)) for point in points],
    )


def build_faiss(work: Path, path: Path) -> None:
    vectors = vectors_of(work)
    kind = f"IVF1024,PQ{DIM // 2}x4fs,RFlat"
    index = direct.faiss.index_factory(DIM, kind, direct.faiss.METRIC_INNER_PRODUCT)
    index.train(np.ascontiguousarray(vectors[:: max(1, len(vectors) // TRAINED)]))
    index.add(vectors)
    direct.faiss.write_index(index, str(path))


def opened_faiss(work: Path, path: Path, grid: list[dict[str, int]]) -> tuple[Search, Settings]:
    index, (_, vectors) = direct.faiss.read_index(str(path)), questions()
    space = direct.faiss.ParameterSpace()

    def choose(point: dict[str, int]) -> None:
        for name, value in point.items():
            space.set_index_parameter(index, name, value)

    return (
        lambda n: index.search(vectors[n : n + 1], K)[1][0].tolist(),
        [(str(point), functools.partial(choose, point)) for point in grid],
    )


def build_tantivy(work: Path, path: Path) -> None:
    direct.filled_tantivy(path, list(texts_of(work)))


def opened_tantivy(work: Path, path: Path) -> tuple[Search, Settings]:
    text, texts = direct.DirectText(path, []), questions()[0]
    return lambda n: list(text.rows(texts[n : n + 1], K)[0][0]), []


def lance_table(work: Path, path: Path, texts: bool) -> Any:
    """Return a new LanceDB table with the rows and their vectors or texts."""
    import lancedb
    import pyarrow as pa

    vectors = vectors_of(work)

    def batches() -> Iterator[Any]:
        lines = texts_of(work)
        for low in range(0, len(vectors), BLOCK):
            part = vectors[low : low + BLOCK]
            rows = pa.array(np.arange(low, low + len(part)), pa.int64())
            if texts:
                column = pa.array(list(itertools.islice(lines, len(part))), pa.string())
            else:
                column = pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(part)), DIM)
            yield pa.RecordBatch.from_arrays([rows, column], names=["row", "text" if texts else "vector"])

    kind = ("text", pa.string()) if texts else ("vector", pa.list_(pa.float32(), DIM))
    schema = pa.schema([("row", pa.int64()), kind])
    return lancedb.connect(str(path)).create_table("t", batches(), schema=schema)


def build_lance(work: Path, path: Path) -> None:
    table = lance_table(work, path, texts=False)
    table.create_index(metric="dot", vector_column_name="vector", index_type="IVF_PQ")


def build_lance_text(work: Path, path: Path) -> None:
    lance_table(work, path, texts=True).create_fts_index("text", with_position=False)


def opened_lance(work: Path, path: Path, grid: list[dict[str, int]]) -> tuple[Search, Settings]:
    import lancedb
    from lancedb.query import MatchQuery

    table, (texts, vectors) = lancedb.connect(str(path)).open_table("t"), questions()

    def search_texts(n: int) -> list[int]:
        query = table.search(MatchQuery(texts[n], "text"), query_type="fts").select(["row"]).limit(K)
        rows: list[int] = query.to_arrow()["row"].to_pylist()
        return rows

    if not grid:
        return search_texts, []
    chosen: dict[str, int] = {}

    def search(n: int) -> list[int]:
        query = table.search(vectors[n]).distance_type("dot").select(["row"]).limit(K)
        for name, value in chosen.items():
            query = getattr(query, name)(value)
        rows: list[int] = query.to_arrow()["row"].to_pylist()
        return rows

    return search, [(str(point), functools.partial(chosen.update, point)) for point in grid]


PROBED = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
Build = Callable[[Path, Path], None]
Open = Callable[[Path, Path], tuple[Search, Settings]]
SYSTEMS: dict[str, tuple[Build | None, Open]] = {
    "linker, vectors": (None, functools.partial(opened_linker, mode="dense")),
    "FAISS, IVF and PQ": (
        build_faiss,
        functools.partial(
            opened_faiss, grid=[{"nprobe": n, "k_factor_rf": f} for n in PROBED for f in (2, 8)]
        ),
    ),
    "LanceDB, IVF and PQ": (
        build_lance,
        functools.partial(
            opened_lance,
            grid=[{"nprobes": n, "refine_factor": f} for n in PROBED[::4] for f in (20, 100, 400)],
        ),
    ),
    "linker, BM25": (None, functools.partial(opened_linker, mode="bm25")),
    "tantivy": (build_tantivy, opened_tantivy),
    "LanceDB, BM25": (build_lance_text, functools.partial(opened_lance, grid=[])),
    "linker, both": (None, functools.partial(opened_linker, mode="hybrid")),
}


@benchmark(seed=SEED, work=KEPT, size=(1_000_000, "documents"))
def measured(options: Arguments) -> Results:
    work = options.work
    shard = measured_once(work / "shard-0.json", build_shard, work, 0, SHARDS, options.size)
    right = measured_once(work / "truth.json", truth, work)["rows"]
    systems = {}
    for name in SYSTEMS:
        systems[name] = measured_once(work / f"{name}.json", system, name, work, right)
        print(name, systems[name], flush=True)
    return {
        "documents": options.size,
        "dimensions": DIM,
        "k": K,
        "queries": QUERIES,
        "linker": shard,
        "systems": systems,
    }
