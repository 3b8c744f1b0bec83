"""What do a million documents with vectors cost in linker, FAISS, LanceDB and tantivy, on one core?

`python -m benchmarks.million --work FOLDER [--shards N]` → benchmarks/results/million.json. LanceDB is not among the
requirements: `pip install lancedb`. The documents are the first shards of ten_million.py, whose folder may be given;
with several, linker searches them together, each other system has one index, and the results are kept next to those of
one shard. The vectors have 256 dimensions; those of the queries are given. Each system runs in its own process, on one
core, and builds in blocks from mapped vectors, or from the texts. Settings that trade recall for time are chosen on
other queries: the fastest with a recall of the top ten of at least RECALL, otherwise those with most. linker's build
stores the documents and indexes their texts and vectors; the other systems' builds do only what the row names. `cpu` is
the CPU time of all threads per query, the least of PASSES, since a virtual machine that is paused counts the pause;
`first` is that of the first pass. `bytes` are those of all documents.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from benchmarks.support import direct
from benchmarks.support.common import percentiles, record, recorded
from benchmarks.support.harness import KEPT, Arguments, benchmark
from benchmarks.support.meanvectors import mean_vectors
from benchmarks.support.passages import SEED, statements
from benchmarks.ten_million import (
    CURVE,
    DIM,
    QUERIES,
    WARM,
    K,
    build_shard,
    index_of,
    measured_once,
    segment_of,
    top,
    vectors_of,
)
from indexes.arrays import normalised
from indexes.interface import Matrix
from linker.engine import Engine

RECALL = 0.95
SHARDS, BLOCK, PASSES = 10, 1 << 15, 3
TRAINED, POINTS = 100_000, 39  # FAISS is trained on at least TRAINED rows, and at least POINTS per cell
Names = list[str] | list[int]
Search = Callable[[int], Names]  # the rows or ids of the top ten of a query
Settings = list[tuple[str, Callable[[], object]]]  # names, and the functions that set them


@functools.cache
def questions() -> tuple[list[str], Matrix]:
    """Return the texts and vectors of the queries, after as many for the choice of settings."""
    texts = statements()[: 2 * QUERIES]
    return texts, normalised(np.hstack([mean_vectors(texts)] * 2))


class Documents(NamedTuple):
    """The first shards of ten_million.py in the folder `work`."""

    work: Path
    shards: int

    @property
    def vectors(self) -> list[Matrix]:
        """The mapped vectors of each shard."""
        return [vectors_of(self.work, number) for number in range(self.shards)]

    @property
    def blocks(self) -> Iterator[Matrix]:
        """The vectors of all documents, at most BLOCK at a time."""
        for vectors in self.vectors:
            for low in range(0, len(vectors), BLOCK):
                yield np.ascontiguousarray(vectors[low : low + BLOCK])

    @property
    def texts(self) -> Iterator[str]:
        """The texts of all documents."""
        for number in range(self.shards):
            with (segment_of(self.work, number) / "documents.jsonl").open("rb") as file:
                yield from (orjson.loads(line)["text"] for line in file)


def truth(documents: Documents) -> dict[str, Any]:
    """Return the rows of each query's top K by cosine, by comparing all vectors."""
    return {"rows": top(documents.vectors, questions()[1])[0].tolist()}


def size_of(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def recall(search: Search, right: list[list[Any]], queries: range) -> float:
    """Return the share of the right answers to `queries` that a search finds."""
    return float(np.mean([len({*search(n)} & {*right[n]}) / K for n in queries]))


def chosen(search: Search, right: list[list[Any]], settings: Settings) -> dict[str, Any]:
    """Choose the fastest settings with enough recall on the other queries; without, those with most."""
    tried = []
    for name, choose in settings:
        choose()
        start = time.process_time()
        share = recall(search, right, range(QUERIES))
        tried.append(((min(share, RECALL), start - time.process_time()), name, share, choose))
    _, name, share, choose = max(tried, key=lambda one: one[0])
    choose()
    return {"settings": name, "recall_of_choice": round(share, 4)}


def measured_search(search: Search, right: list[list[Any]] | None, settings: Settings) -> dict[str, Any]:
    """Return the cost of a query and, where the `right` answers are given, the recall with the chosen settings."""
    figures = {} if right is None else chosen(search, right, settings)
    queries = range(QUERIES, 2 * QUERIES)
    for number in range(WARM):
        search(number)
    passes = []
    for _ in range(PASSES):
        seconds = []
        for number in queries:
            start = time.process_time()
            search(number)
            seconds.append(time.process_time() - start)
        passes.append(seconds)
    if right is not None:
        figures["recall"] = round(recall(search, right, queries), 4)
    least = np.min(passes, axis=0).tolist()
    return {**figures, "cpu": percentiles(least, 3), "first": percentiles(passes[0], 3)}


def one_core() -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    direct.faiss.omp_set_num_threads(1)


def built(name: str, documents: Documents, path: Path) -> dict[str, Any]:
    """Build a system's index."""
    one_core()
    shutil.rmtree(path, ignore_errors=True)
    build, start = SYSTEMS[name][0], time.process_time()
    assert build is not None
    build(documents, path)
    return {"build_cpu_s": round(time.process_time() - start, 1), "bytes": size_of(path)}


def searched(name: str, documents: Documents, path: Path, right: list[list[int]]) -> dict[str, Any]:
    """Open a system's index and search it."""
    one_core()
    questions()
    start, clock = time.process_time(), time.perf_counter()
    search, settings = SYSTEMS[name][1](documents, path)
    opening = {
        "open_cpu_s": round(time.process_time() - start, 2),
        "open_s": round(time.perf_counter() - clock, 2),
    }
    rows: list[list[Any]] | None = right if settings else None
    if name.startswith("linker") and settings:
        size = len(documents.vectors[0])
        rows = [[f"{row // size}-{row % size}" for row in of_query] for of_query in right]
    return {**opening, **measured_search(search, rows, settings)}


def opened_linker(documents: Documents, path: Path, mode: str) -> tuple[Search, Settings]:
    directories = [index_of(documents.work, number) for number in range(documents.shards)]
    engine, (texts, vectors) = Engine.open(directories, on_failure="fail", verify=False), questions()
    if mode == "bm25":
        return lambda n: list(engine.search(texts[n], K, mode="bm25").hits[0].ids), []
    if mode == "hybrid":
        return lambda n: list(engine.search(texts[n], K, mode="hybrid", vectors=vectors[n]).hits[0].ids), []
    index: Any = engine.collection.hybrid.vectors  # of one directory, or of several
    cells = [of_one.generator.settings for of_one in getattr(index, "_shards", [index])]
    points = [*({"probed": 1 / parts, "refine": 1} for parts in (512, 256, 128)), *CURVE, dict(cells[0])]

    def choose(point: dict[str, float]) -> None:
        for settings in cells:
            settings.update(point)

    return (
        lambda n: list(engine.search(k=K, vectors=vectors[n]).hits[0].ids),
        [(str(point), functools.partial(choose, point)) for point in points],
    )


def build_faiss(documents: Documents, path: Path) -> None:
    """Build an index with about √n cells, in a power of two. Its own copy of the vectors is never moved."""
    shards = documents.vectors
    count = sum(map(len, shards))
    cells = 1 << round(math.log2(count) / 2)
    every = max(1, count // max(TRAINED, POINTS * cells))
    kind = f"IVF{cells},PQ{DIM // 2}x4fs,RFlat"
    index = direct.faiss.index_factory(DIM, kind, direct.faiss.METRIC_INNER_PRODUCT)
    index.train(np.concatenate([vectors[::every] for vectors in shards]))
    # Growing, it would for a moment be in memory twice.
    direct.faiss.downcast_index(index.refine_index).codes.resize(count * DIM * 4)
    for block in documents.blocks:
        index.add(block)
    direct.faiss.write_index(index, str(path))


def opened_faiss(documents: Documents, path: Path, grid: list[dict[str, int]]) -> tuple[Search, Settings]:
    index, (_, vectors) = direct.faiss.read_index(str(path)), questions()
    space = direct.faiss.ParameterSpace()

    def choose(point: dict[str, int]) -> None:
        for name, value in point.items():
            space.set_index_parameter(index, name, value)

    return (
        lambda n: index.search(vectors[n : n + 1], K)[1][0].tolist(),
        [(str(point), functools.partial(choose, point)) for point in grid],
    )


def build_tantivy(documents: Documents, path: Path) -> None:
    direct.filled_tantivy(path, documents.texts)


def opened_tantivy(documents: Documents, path: Path) -> tuple[Search, Settings]:
    text, texts = direct.DirectText(path, []), questions()[0]
    return lambda n: list(text.rows(texts[n : n + 1], K)[0][0]), []


def lance_table(documents: Documents, path: Path, texts: bool) -> Any:
    """Return a new LanceDB table with the rows and their vectors or texts."""
    import lancedb
    import pyarrow as pa

    def batches() -> Iterator[Any]:
        lines, low = documents.texts, 0
        for part in documents.blocks:
            rows = pa.array(np.arange(low, low + len(part)), pa.int64())
            low += len(part)
            if texts:
                column = pa.array(list(itertools.islice(lines, len(part))), pa.string())
            else:
                column = pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(part)), DIM)
            yield pa.RecordBatch.from_arrays([rows, column], names=["row", "text" if texts else "vector"])

    kind = ("text", pa.string()) if texts else ("vector", pa.list_(pa.float32(), DIM))
    schema = pa.schema([("row", pa.int64()), kind])
    return lancedb.connect(str(path)).create_table("t", batches(), schema=schema)


def build_lance(documents: Documents, path: Path) -> None:
    table = lance_table(documents, path, texts=False)
    table.create_index(metric="dot", vector_column_name="vector", index_type="IVF_PQ")


def build_lance_text(documents: Documents, path: Path) -> None:
    lance_table(documents, path, texts=True).create_fts_index("text", with_position=False)


def opened_lance(documents: Documents, path: Path, grid: list[dict[str, int]]) -> tuple[Search, Settings]:
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


PROBED = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
Build = Callable[[Documents, Path], None]
Open = Callable[[Documents, Path], tuple[Search, Settings]]
SYSTEMS: dict[str, tuple[Build | None, Open]] = {
    "linker, vectors": (None, functools.partial(opened_linker, mode="dense")),
    "FAISS, IVF and PQ": (
        build_faiss,
        functools.partial(
            opened_faiss, grid=[{"nprobe": n, "k_factor_rf": f} for n in PROBED for f in (2, 8, 32)]
        ),
    ),
    "LanceDB, IVF and PQ": (
        build_lance,
        functools.partial(
            opened_lance,
            grid=[{"nprobes": n, "refine_factor": f} for n in PROBED[::4] for f in (20, 100, 400, 1000)],
        ),
    ),
    "linker, BM25": (None, functools.partial(opened_linker, mode="bm25")),
    "tantivy": (build_tantivy, opened_tantivy),
    "LanceDB, BM25": (build_lance_text, functools.partial(opened_lance, grid=[])),
    "linker, both": (None, functools.partial(opened_linker, mode="hybrid")),
}


@benchmark(
    seed=SEED, work=KEPT, size=(1_000_000, "documents in a shard"), shards=(1, f"how many, at most {SHARDS}")
)
def measured(options: Arguments) -> None:
    work, documents = options.work, Documents(options.work, options.shards)
    shards = [
        measured_once(work / f"shard-{n}.json", build_shard, work, n, SHARDS, options.size)
        for n in range(options.shards)
    ]
    folder = work / f"rivals-{options.shards}"
    folder.mkdir(exist_ok=True)
    right = measured_once(folder / "truth.json", truth, documents)["rows"]
    systems: dict[str, Any] = {}
    for name, (build, _) in SYSTEMS.items():
        path, systems[name] = folder / f"{name}.index", {}
        if build is not None:
            systems[name] = measured_once(folder / f"{name}-build.json", built, name, documents, path)
        systems[name] = systems[name] | measured_once(
            folder / f"{name}.json", searched, name, documents, path, right
        )
        print(name, systems[name], flush=True)
    found = {
        "documents": options.shards * options.size,
        "dimensions": DIM,
        "k": K,
        "queries": QUERIES,
        "linker": {
            "build_cpu_s": round(sum(shard["build_cpu_s"] for shard in shards), 1),
            "bytes": {part: sum(shard["bytes"][part] for shard in shards) for part in shards[0]["bytes"]},
            "peak_anonymous_mib": max(shard["peak_anonymous_mib"] for shard in shards),
        },
        "systems": systems,
    }
    earlier = recorded("million")
    if options.shards == 1:
        sharded = {"sharded": earlier["sharded"]} if "sharded" in earlier else {}
        print(record("million", found | sharded, SEED, "alone"))
    else:
        print(record("million", earlier | {"sharded": found}, SEED, "sharded"))
