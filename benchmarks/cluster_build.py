"""What does building an index on a cluster cost with one process, and with one, two or four Ray workers that write?

`python -m benchmarks.cluster_build [--work FOLDER] [--sentences N] [--workers N …]` → results/cluster_build.json.
Sentences of statements2articles are encoded by a star (128 dimensions, 4 × 32, untrained: its speed does not depend
on the weights) and written with HNSW to one Elasticsearch node with 512 MiB of heap on this machine. `lead` is the
CPU time of the command itself, `workers` that of Ray and its workers since their start (including the import of the
encoder), `server` that of Elasticsearch. `wall` counts from the first batch: Ray's start is reported separately. All
share the cores of one machine with other work, so wall-clock time says little about the gain from more machines; CPU
time does.
"""

import contextlib
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.cluster import Clock
from benchmarks.encode import STARS, build
from benchmarks.support.harness import WORK, Arguments, Results, benchmark
from benchmarks.support.passages import SEED, prepare
from indexes.address import Address
from indexes.cluster import drop
from indexes.interface import Document
from linker.base.errors import LinkerError
from linker.corpora import read_corpus
from linker.encoders.folder import save
from linker.engine import building
from linker.engine.options import BuildOptions
from linker.engine.scaleout.cluster import connection, import_ray
from tests import elastic_server

TRIES = 6
STAR = "star 4 x 32, 128 dimensions"


def model(corpus: Path, folder: Path) -> Path:
    """Return the folder of an untrained star that knows the words of the corpus."""
    texts = (record.text for record in read_corpus(corpus, None) if isinstance(record, Document))
    words = sorted({word for text in texts for word in text.lower().split() if word.isalpha()})
    if not folder.exists():
        save(build(STARS[STAR], words), folder)
    return folder


def workers_cpu() -> float:
    """Return the CPU seconds of this process's living descendants: Ray, its workers, the server."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def start(workers: int, stack: contextlib.ExitStack) -> float:
    """Run Ray with this many workers (0: no Ray); return the seconds that its start took.

    Ray allows itself 15 to 30 seconds, too few on a loaded machine: then it is started again.
    """
    if not workers:
        return 0.0
    ray = import_ray()
    known = set(psutil.Process().children(recursive=True))
    for _ in range(TRIES):
        begin = time.perf_counter()
        try:
            stack.enter_context(connection(ray, cpus=workers))
            return time.perf_counter() - begin
        except LinkerError:
            for process in set(psutil.Process().children(recursive=True)) - known:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
    raise SystemExit("Ray does not start here")


def measure(corpus: Path, encoder: Path, node: elastic_server.Node, workers: int) -> dict[str, Any]:
    """Return the cost of one build."""
    where = Path(f"elastic+{node.url}/many-{workers}")
    options = BuildOptions(encoder=str(encoder), vectors="hnsw", engine="ray" if workers else "local")
    java = psutil.Process(node.pid).cpu_times
    with contextlib.ExitStack() as stack:
        started = start(workers, stack)
        before, others = workers_cpu(), sum(java()[:2])
        clock = Clock(node.pid)
        report = building.build([corpus], where, options)
        spent = clock.read()
        own = workers_cpu() - before - (sum(java()[:2]) - others)
    cpu = {"lead": spent["client_cpu_s"], "workers": round(max(own, 0.0), 2), "server": spent["server_cpu_s"]}
    address = Address.of(where)
    assert address
    drop(address)
    return {
        "documents": report.documents,
        "wall_s": spent["wall_s"],
        "ray_start_s": round(started, 1),
        "cpu_s": cpu,
        "documents_per_s": round(report.documents / spent["wall_s"]),
        "documents_per_cpu_s": round(report.documents / sum(cpu.values())),
    }


@benchmark(seed=SEED, work=WORK, sentences=20_000, workers=([0, 1, 2, 4], "0: without Ray"))
def measured(options: Arguments) -> Results:
    corpus = prepare(options.work, options.sentences).sentences
    encoder = model(corpus, options.work / f"{options.sentences}-star")
    rows = []
    with elastic_server.folder() as disk, contextlib.ExitStack() as stack:
        node = elastic_server.Node(disk / "node")
        stack.callback(node.stop)
        node.start()
        for workers in options.workers:
            rows.append({"workers": workers, **measure(corpus, encoder, node, workers)})
            print(rows[-1], flush=True)
    heap = " ".join(elastic_server.HEAP[:2])
    return {"sentences": options.sentences, "encoder": STAR, "heap": heap, "rows": rows}
