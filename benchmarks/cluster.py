"""What does an index that is only on a cluster cost to build, store and search, and how much does HNSW find?

`python -m benchmarks.cluster [--work FOLDER] [--sentences N]` → benchmarks/results/cluster.json. Sentences of
statements2articles with mean word vectors are built into one index on a dedicated Elasticsearch node (2 GiB of heap,
its data on disk), and into a directory with exact vectors for comparison. The queries are the test statements, one at
a time, hybrid, k = 10, with their vectors given, from 1 and from 8 threads of one client. `wall` is wall-clock time,
which other load on the machine lengthens; `cpu` is the CPU time of the client's and the server's processes. Recall@10
compares the dense search with exact search by numpy.
"""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from benchmarks.support.common import percentiles
from benchmarks.support.harness import WORK, Arguments, Results, benchmark
from benchmarks.support.meanvectors import mean_vectors
from benchmarks.support.passages import SEED, prepare, statements
from benchmarks.support.service import cpu_seconds
from indexes.address import Address
from indexes.cluster import size_of
from indexes.interface import Matrix
from indexes.store import manifest as manifests
from linker.engine import Engine, building
from linker.engine.options import BuildOptions
from tests import elastic_server

K, QUERIES, WARM, CLIENTS = 10, 400, 50, (1, 8)
HEAP = "-Xms2g -Xmx2g"


class Clock:
    """Seconds since its creation: wall-clock time, and CPU time of this process and of the server."""

    def __init__(self, server: int | None) -> None:
        self._server = server
        self._start = self._now()

    def _now(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        server = 0.0 if self._server is None else cpu_seconds(self._server)
        return np.array([time.perf_counter(), time.process_time(), server])

    def read(self) -> dict[str, float]:
        """Return the seconds that have passed."""
        wall, client, server = (self._now() - self._start).tolist()
        return {"wall_s": round(wall, 2), "client_cpu_s": round(client, 2), "server_cpu_s": round(server, 2)}


def build(out: Path, data: tuple[Path, Path, Path], kind: str, server: int | None) -> dict[str, Any]:
    """Return the cost of building an index."""
    corpus, matrix, ids = data
    clock = Clock(server)
    options = BuildOptions(vectors=kind, vectors_file=matrix, ids_file=ids)
    report = building.build([corpus], out, options)
    spent = clock.read()
    cpu = spent["client_cpu_s"] + spent["server_cpu_s"]
    address = Address.of(out)
    size = size_of(address) if address else sum(f.bytes for f in manifests.load(out).files.values())
    return {
        **spent,
        "documents": report.documents,
        "documents_per_s": round(report.documents / spent["wall_s"]),
        "documents_per_cpu_s": round(report.documents / cpu),
        "bytes_per_document": round(size / report.documents),
    }


def ask(
    engine: Engine, clients: int, queries: tuple[list[str], Matrix], server: int | None
) -> dict[str, float]:
    """Return the cost of single hybrid queries from this many concurrent threads."""
    texts, vectors = queries

    def one(number: int) -> float:
        start = time.perf_counter()
        engine.search(texts[number], K, vectors=vectors[number])
        return time.perf_counter() - start

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(one, range(WARM)))
        clock = Clock(server)
        seconds = list(pool.map(one, range(len(texts))))
    spent = clock.read()
    cpu = 1000 * (spent["client_cpu_s"] + spent["server_cpu_s"]) / len(texts)
    return {
        **percentiles(seconds, 1),
        "queries_per_s": round(len(texts) / spent["wall_s"], 1),
        "cpu_ms": round(cpu, 1),
    }


def recall(engine: Engine, vectors: Matrix, ids: list[str], queries: Matrix) -> float:
    """Return the share of the exact top k that the dense search finds; ties at rank k count as found."""
    found = 0
    row = {id_: number for number, id_ in enumerate(ids)}
    for query, hits in zip(queries, engine.search(k=K, vectors=queries).hits, strict=True):
        cosines = vectors @ query
        last = np.partition(cosines, -K)[-K]
        found += sum(cosines[row[id_]] >= last - 1e-6 for id_ in hits.ids)
    return found / (K * len(queries))


@dataclass(frozen=True)
class Given:
    """Data to index and queries: the files of texts, vectors and ids; the ids; the queries and their vectors."""

    files: tuple[Path, Path, Path]
    ids: list[str]
    queries: tuple[list[str], Matrix]


def given(work: Path, sentences: int) -> Given:
    """Return the data, which is written to `work` if it is missing."""
    prepared, ids_file = prepare(work, sentences), work / f"{sentences}.ids"
    ids = [orjson.loads(line)["_id"] for line in prepared.sentences.read_bytes().splitlines()]
    ids_file.write_text("".join(f"{id_}\n" for id_ in ids))
    texts = statements()[:QUERIES]
    return Given((prepared.sentences, prepared.vectors, ids_file), ids, (texts, mean_vectors(texts)))


def figures(data: Given, out: Path, kind: str, server: int | None) -> dict[str, Any]:
    """Return the costs to build, keep and search an index, and its vectors' recall."""
    found: dict[str, Any] = {"build": build(out, data.files, kind, server)}
    with Engine.open(out) as engine:
        found["search"] = {str(n): ask(engine, n, data.queries, server) for n in CLIENTS}
        share = recall(engine, np.load(data.files[1]), data.ids, data.queries[1][:200])
        found["recall"] = round(float(share), 4)
    return found


@contextlib.contextmanager
def running(
    heap: str, product: Any = elastic_server.ELASTICSEARCH, *, in_memory: bool = False
) -> Iterator[elastic_server.Node]:
    """Run a dedicated server, with its data on disk or where a sync costs nothing."""
    where = elastic_server.folder() if in_memory else tempfile.TemporaryDirectory(prefix="cluster-")
    with where as disk:
        Path(disk).chmod(0o755)
        environment = {f"{product.prefix}_JAVA_OPTS": heap}
        node = elastic_server.Node(Path(disk) / "node", environment=environment, product=product)
        try:
            node.start()
            yield node
        finally:
            node.stop()


@benchmark(seed=SEED, work=WORK, sentences=20_000)
def measured(options: Arguments) -> Results:
    work, sentences = options.work, options.sentences
    found: Results = {"sentences": sentences, "k": K, "queries": QUERIES, "heap": HEAP}
    with running(HEAP) as node:
        data, directory = given(work, sentences), work / f"{sentences}-cluster-rival.index"
        shutil.rmtree(directory, ignore_errors=True)
        found["directory, exact"] = figures(data, directory, "flat", None)
        url = Path(f"elastic+{node.url}/bench-hnsw")
        found["cluster, HNSW"] = figures(data, url, "hnsw", node.pid)
    return found
