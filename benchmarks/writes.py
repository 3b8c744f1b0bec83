"""What does a change to a large index cost, and how many single-document changes can the service take?

`python -m benchmarks.writes --work FOLDER [--documents N] [--dim D] [--only PART]` → results/writes.json. The texts are
TWELVE words by Zipf's law; with `--dim`, vectors are random, from a file. The index is built if missing, kept, and
copied for each run. Targets at a million: one addition ≤ 10 CPU-ms and ≤ 50 MiB, 1,000 additions ≤ .3 s, 1,000
removals ≤ .5 s; 8 writers ≥ 200 documents per second, and searches next to them at most twice as slow in the 99th
percentile. `stream`: commits, searches and background merges in one process, whose threads take turns as often as the
service's; ≤ 12 segments, no commit longer than 100 ms, and searches at most twice as slow while segments are merged.
`claims`: a build of the claims linked to tweets, and single-query searches, ≤ .2 s and ≥ 10,000 per CPU-second.
`cpu_ms` is CPU time of all threads, `ms` wall-clock time, both medians; `mib` is the growth of anonymous memory from
before the first change to after the last.
"""

import gc
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import cpu_time, memory, recorded, shared_data
from benchmarks.support.harness import KEPT, Arguments, Results, benchmark
from benchmarks.support.service import Service, serving
from indexes.arrays import normalised
from indexes.interface import Document, Matrix
from indexes.store import manifest as manifests
from indexes.store.records import BuildRecord, EncoderRecord, Manifest
from indexes.writer import Writer
from linker.corpora import read_queries
from linker.engine import building
from linker.engine.engine import Engine
from linker.engine.options import BuildOptions
from linker.server.running import SWITCH

SEED, TWELVE, WORDS, BLOCK = 11, 12, 50_000, 20_000
SINGLE, MANY, WRITERS, SECONDS, QUERY = 30, 1000, 8, 10.0, "w1 w7 w19"
LONE = 1000  # queries
STREAM, SOME = 200, 500  # commits, and documents in each


def documents(first: int, count: int) -> list[Document]:
    """Return documents `first` and the following ones."""
    rng = np.random.default_rng([SEED, first])
    words = np.minimum(rng.zipf(1.3, size=(count, TWELVE)), WORDS).tolist()
    return [Document(f"d{first + n:08d}", " ".join(f"w{w}" for w in row)) for n, row in enumerate(words)]


def vectors(first: int, count: int, dim: int) -> Matrix | None:
    rng = np.random.default_rng([SEED, first, dim])
    return normalised(rng.standard_normal((count, dim), dtype=np.float32)) if dim else None


def index(work: Path, count: int, dim: int) -> Path:
    """Return the directory of an index, which is built if missing."""
    out = work / f"writes-{count}-{dim}.index"
    if not (out / "manifest.json").exists():
        encoder = EncoderRecord("elsewhere", "", dim) if dim else None
        manifest = Manifest(
            vectors="flat" if dim else "none", encoder=encoder, build=BuildRecord(complete=False)
        )
        with Writer.create(out, manifest) as writer:
            for first in range(0, count, BLOCK):
                writer.add(documents(first, BLOCK), vectors(first, BLOCK, dim))
                writer.commit(BuildRecord(complete=False, position=first + BLOCK))
            writer.commit(BuildRecord(position=count))
    return out


def timed(calls: Iterator[Callable[[], object]]) -> dict[str, float]:
    """Return the medians of the costs of calls, and the growth of memory over all of them."""
    cpu, wall, before = [], [], memory("RssAnon")
    for call in calls:
        clock, start = time.perf_counter(), time.process_time()
        call()
        cpu.append(1000 * (time.process_time() - start))
        wall.append(1000 * (time.perf_counter() - clock))
    grown = memory("RssAnon") - before
    found = {"cpu_ms": statistics.median(cpu), "ms": statistics.median(wall), "mib": grown}
    return {name: round(value, 1) for name, value in found.items()}


def changes(directory: Path, count: int, dim: int) -> dict[str, Any]:
    """Return the cost of changes in a process that has opened the index and searched it."""
    engine, new = Engine.open(directory), count

    def add(size: int) -> None:
        nonlocal new
        engine.add(documents(new, size), vectors=vectors(new, size, dim))
        new += size

    engine.search(QUERY, mode="bm25")
    if dim:
        engine.search(vectors=vectors(0, 1, dim))
    step = count // MANY
    gone = [[f"d{n * step + start:08d}" for n in range(MANY)] for start in range(3)]
    return {
        "one addition": timed((lambda: add(1)) for _ in range(SINGLE)),
        "1,000 additions": timed((lambda: add(MANY)) for _ in range(3)),
        "1,000 removals": timed((lambda ids=ids: engine.delete(ids)) for ids in gone),  # type: ignore[misc]
        "one removal": timed((lambda n=n: engine.delete([f"d{n * step + 3:08d}"])) for n in range(20)),  # type: ignore[misc]
        "segments": len(engine.collection.manifest.segments),
    }


def stream(directory: Path, count: int) -> dict[str, Any]:
    """Return how long commits block and searches take while a thread of this process merges their segments."""
    took: dict[str, list[float]] = {"quiet": [], "beside": [], "merging": []}
    stops, busy, most, end = [], [], 0, threading.Event()

    def search(until: Callable[[], bool], name: str = "") -> None:
        while not until():
            merging = engine._merger.running
            start = time.perf_counter()
            engine.search(QUERY, mode="bm25")
            spent = 1000 * (time.perf_counter() - start)
            took[name or ("merging" if merging or engine._merger.running else "beside")].append(spent)

    before = manifests.load(directory).generation
    sys.setswitchinterval(SWITCH)
    with Engine.open(directory) as engine:
        begin = time.monotonic()
        search(lambda: time.monotonic() > begin + SECONDS / 2, "quiet")
        coming = [documents(count + number * SOME, SOME) for number in range(STREAM)]
        gc.freeze()  # the garbage collector then ignores these documents
        searching = threading.Thread(target=search, args=[end.is_set])
        searching.start()
        for new in coming:
            start, clock = time.perf_counter(), time.thread_time()
            engine.add(new, vectors=None)
            stops.append(1000 * (time.perf_counter() - start))
            busy.append(1000 * (time.thread_time() - clock))
            most = max(most, len(engine.collection.manifest.segments))
        end.set()
        searching.join()
    after = manifests.load(directory).generation
    return {
        "commits": STREAM,
        "documents_per_commit": SOME,
        "commit": {
            "p50_ms": round(statistics.median(stops), 1),
            "longest_ms": round(max(stops), 1),
            "p50_cpu_ms": round(statistics.median(busy), 1),
            "longest_cpu_ms": round(max(busy), 1),
        },
        "most_segments": most,
        "merges": after - before - STREAM,
        "searches": quantiles(took),
        "load": round(os.getloadavg()[0], 1),
    }


def quantiles(took: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Return the median and the 99th percentile of each list of milliseconds."""
    return {
        name: {"p50_ms": round(float(np.quantile(ms, 0.5)), 1), "p99_ms": round(float(np.quantile(ms, 0.99)), 1)}
        for name, ms in took.items()
    }  # fmt: skip


def searches(service: Service, seconds: float) -> list[float]:
    """Return how many milliseconds each of many searches took, one after another."""
    took, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.perf_counter()
        status, _ = service.request("POST", "/v1/search", {"text": QUERY, "mode": "bm25"})
        assert status == 200, status
        took.append(1000 * (time.perf_counter() - start))
    return took


def put(service: Service, first: str) -> tuple[list[threading.Thread], list[int]]:
    """Start clients that put documents with ids that begin with `first`; return them and their counts of puts."""
    done, end = [0] * WRITERS, time.monotonic() + SECONDS

    def write(number: int) -> None:
        while time.monotonic() < end:
            body = {"text": f"w{number} w{done[number]} new"}
            status, _ = service.request("PUT", f"/v1/documents/{first}-{number}-{done[number]}", body)
            assert status == 201, status
            done[number] += 1

    threads = [threading.Thread(target=write, args=[number]) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    return threads, done


def writers(directory: Path) -> dict[str, Any]:
    """Return how many documents per second clients put, alone and during searches, and how long searches take."""
    rates, took = {}, {}
    with serving(directory) as service:
        searches(service, SECONDS / 2)  # meanwhile the libraries of the page are loaded
        took["quiet"] = searches(service, SECONDS / 2)
        for name in ("alone", "beside"):
            start = time.monotonic()
            threads, done = put(service, name)
            if name == "beside":
                took[name] = searches(service, SECONDS)
            for thread in threads:
                thread.join()
            rates[name] = sum(done) / (time.monotonic() - start)
    return {
        "writers": WRITERS,
        "documents_per_s": round(rates["beside"], 1),
        "documents_per_s_alone": round(rates["alone"], 1),
        "searches": quantiles(took),
        "load": round(os.getloadavg()[0], 1),
    }


def claims() -> dict[str, Any]:
    """Return the cost of building the claims index, and sequential queries answered per CPU-second."""
    data = shared_data() / "tweets2claims"
    queries = [query.text for query in read_queries(data / "queries.jsonl.gz")][:LONE]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "index"

        def build() -> None:
            shutil.rmtree(out, ignore_errors=True)
            building.build([data / "corpus.jsonl.gz"], out, BuildOptions())

        seconds = cpu_time(build)
        with Engine.open(out) as engine:
            lone = cpu_time(lambda: [engine.search([query]) for query in queries])
            together = cpu_time(lambda: engine.search(queries))
    return {
        "build_cpu_s": round(seconds, 3),
        "lone_per_cpu_s": round(len(queries) / lone),
        "together_per_cpu_s": round(len(queries) / together),
    }


@benchmark(
    seed=SEED,
    work=KEPT,
    documents=(1_000_000, "at least 4,000"),
    dim=(0, "of vectors; 0: none"),
    only=("", "measure one part: changes, stream, service or claims; the others stay as recorded"),
)
def measured(options: Arguments) -> Results:
    parts: dict[str, Callable[[Path], dict[str, Any]]] = {
        "changes": lambda copy: changes(copy, options.documents, options.dim),
        "stream": lambda copy: stream(copy, options.documents),
        "service": writers,
    }
    found = recorded("writes") if options.only else {"documents": options.documents, "dim": options.dim}
    for name, measure in parts.items():
        # texts without an encoder have no vectors
        if options.only in ("", name) and (name == "changes" or not options.dim):
            source = index(options.work, options.documents, options.dim)
            with tempfile.TemporaryDirectory(dir=options.work) as folder:
                found[name] = measure(Path(shutil.copytree(source, Path(folder) / name)))
            print(name, found[name], flush=True)
    return found | ({"claims": claims()} if options.only in ("", "claims") else {})
