"""What does searching several directories as one cost, and how much do threads gain on two cores?

`python -m benchmarks.shards [--work FOLDER] [--sentences N]` → benchmarks/results/shards.json. The same sentences of
statements2articles with mean word vectors are stored in one index, in two and in four; the queries are the test
statements, one at a time, hybrid, k = 10, with their vectors given. Each case runs in its own process on one core or
two; the round with the lowest median counts, since the machine has other load. All results must equal those of
the single index: ids, order and scores.

`wall` is wall-clock time, which other load lengthens. `path` is the critical path in CPU time: the searching thread's
time, plus, for each set of shards searched at once, the maximum over cores. It is the time an idle machine would
take. `ideal` is half of the single index's path on one core, and no process per shard can do better.
"""

import functools
import itertools
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import xxhash

from benchmarks.support.common import fresh, percentiles
from benchmarks.support.harness import WORK, Arguments, Results, benchmark
from benchmarks.support.meanvectors import mean_vectors
from benchmarks.support.passages import SEED, prepare, statements
from indexes.interface import Matrix
from indexes.sharded import collection
from indexes.store import manifest as manifests
from linker.engine import Engine, building
from linker.engine.options import BuildOptions

K, ROUNDS, QUERIES, WARM = 10, 2, 100, 20
SHARDS, CORES = (1, 2, 4), (1, 2)


def build(work: Path, sentences: int) -> dict[int, list[Path]]:
    """Return, for each number of shards, their directories; each holds an equal, consecutive part of the sentences."""
    data = prepare(work, sentences)
    lines: list[bytes] = []
    found: dict[int, list[Path]] = {}
    for count in SHARDS:
        edges = [sentences * n // count for n in range(count + 1)]
        found[count] = [work / f"{sentences}-{count}-{n}.index" for n in range(count)]
        for out, (low, high) in zip(found[count], itertools.pairwise(edges), strict=True):
            if (out / manifests.NAME).exists() and manifests.load(out).build.complete:
                continue
            shutil.rmtree(out, ignore_errors=True)
            lines = lines or data.sentences.read_bytes().splitlines(keepends=True)
            vectors = np.load(data.vectors, mmap_mode="r")
            corpus, matrix, ids = (out.with_suffix(suffix) for suffix in (".jsonl", ".npy", ".ids"))
            corpus.write_bytes(b"".join(lines[low:high]))
            np.save(matrix, vectors[low:high])
            ids.write_text("".join(f"{orjson.loads(line)['_id']}\n" for line in lines[low:high]))
            building.build([corpus], out, BuildOptions(vectors="flat", vectors_file=matrix, ids_file=ids))
    return found


class CriticalPath:
    """The critical path of searches, in CPU seconds; `Lanes.each` is replaced by one that measures its calls."""

    def __init__(self, cores: int) -> None:
        self._cores, self._lanes = cores, 0.0
        plain = collection.Lanes.each

        def each(lanes: collection.Lanes, call: Callable[[Any], Any], parts: Iterable[Any]) -> list[Any]:
            spent: list[float] = []

            def timed(part: Any) -> Any:
                start = time.thread_time()
                try:
                    return call(part)
                finally:
                    spent.append(time.thread_time() - start)

            found = plain(lanes, timed, parts)
            if lanes._pool is None:  # the calls ran in the searching thread
                return found
            loads = [0.0] * self._cores
            for seconds in sorted(spent, reverse=True):
                loads[loads.index(min(loads))] += seconds
            self._lanes += max(loads)
            return found

        collection.Lanes.each = each  # type: ignore[assignment]  # in this process alone

    def of(self, call: Callable[[], object]) -> float:
        """Return the critical path of a call."""
        self._lanes, start = 0.0, time.thread_time()
        call()
        return time.thread_time() - start + self._lanes


def ask(directories: Sequence[Path], cores: int, texts: list[str], vectors: Matrix) -> dict[str, Any]:
    """Return the cost of single queries in this process, in milliseconds, and a hash of all results."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    start = time.perf_counter()
    engine = Engine.open(list(directories))
    opened = time.perf_counter() - start
    for text, vector in zip(texts[:WARM], vectors, strict=False):
        engine.search(text, K, vectors=vector)
    best: dict[str, Any] = {}
    path = CriticalPath(cores)
    for _ in range(ROUNDS):
        wall, paths, before = [], [], time.process_time()
        for text, vector in zip(texts, vectors, strict=True):
            start = time.perf_counter()
            paths.append(path.of(functools.partial(engine.search, text, K, vectors=vector)))
            wall.append(time.perf_counter() - start)
        cpu = round(1000 * (time.process_time() - before) / len(wall), 2)
        along = percentiles(paths)
        if not best or along["p50_ms"] < best["path"]["p50_ms"]:
            best = {"path": along, "wall": percentiles(wall), "cpu_ms": cpu}
    answer = engine.search(texts, K, vectors=vectors)
    digest = xxhash.xxh3_64()
    for hits in answer.hits:
        digest.update(" ".join(hits.ids).encode() + hits.scores.tobytes())
    return {**best, "open_s": round(opened, 2), "answers": digest.hexdigest()}


def alone(directories: Sequence[Path], cores: int, queries: tuple[list[str], Matrix]) -> dict[str, Any]:
    """Return a case's figures, measured in a fresh process."""
    found = fresh(ask, directories, cores, *queries)
    print(f"{len(directories)} directories, {cores} cores", found, file=sys.stderr, flush=True)
    return found


@benchmark(seed=SEED, work=WORK, sentences=300_000)
def measured(options: Arguments) -> Results:
    indexes = build(options.work, options.sentences)
    cases = [(count, cores) for cores in CORES for count in SHARDS]
    texts = statements()[:QUERIES]
    queries = texts, mean_vectors(texts)
    single = {f"{count} on {cores}": alone(indexes[count], cores, queries) for count, cores in cases}
    answers = {figures.pop("answers") for figures in single.values()}
    assert len(answers) == 1, "the shards' answers differ from the one index's"
    whole = single["1 on 1"]["path"]["p50_ms"]
    gains = {
        name: {"times_one": round(whole / figures["path"]["p50_ms"], 2)} for name, figures in single.items()
    }
    about = {"sentences": options.sentences, "k": K, "queries": QUERIES}
    return {**about, "single": single, "gain": gains, "same_answers": True}
