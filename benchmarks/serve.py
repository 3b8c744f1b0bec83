"""How many searches does the service answer, and how fast, compared with the alternatives?

`python -m benchmarks.serve [--work FOLDER] [--only PART,…]` → benchmarks/results/serve.json. Targets at 64
connections, compared with a plain FastAPI server over the same encoder and a flat FAISS index: throughput at least
2 times, p99 at most 1.1 times.

`mix` measures one client's searches next to the worst mix that another token may send; it has its own record,
serve_mix.json, since it needs fewer sentences. Target: p99 ≤ 1 s.

Documents are sentences of statements2articles, queries the test statements, k = 10; responses are ids and scores.
Real servers on loopback, under load from `wrk` over 1, 8, 64 and 256 connections. The systems take turns in each
round, and the round with the highest throughput counts. Servers and load generator share the machine's cores, so
`cpu_ms`, the CPU time of the server's processes per response, is more informative than throughput. Elasticsearch 8.19
has one shard and its built-in english analyser. Qdrant is not compared: none of the registries that this project
installs from ships its server.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cluster import running
from benchmarks.support import text_rivals
from benchmarks.support.common import record, recorded, records
from benchmarks.support.harness import WORK, Arguments, Commas, benchmark
from benchmarks.support.mix import attack, waits
from benchmarks.support.passages import SEED, statements
from benchmarks.support.serve_data import make_index
from benchmarks.support.service import Service, cpu_seconds, serving

CONNECTIONS, ROUNDS, SECONDS, K = (1, 8, 64, 256), 2, 3, 10
THREADS = {**os.environ, "OMP_NUM_THREADS": "1"}
MIX_SECONDS = 60


SCRIPT = """
local bodies, n = {}, 0
function init(args)
  for line in io.lines(args[1]) do bodies[#bodies + 1] = line end
end
function request()
  n = n % #bodies + 1
  return wrk.format("POST", nil, {["content-type"] = "application/json"}, bodies[n])
end
function done(summary, latency, requests)
  local e = summary.errors
  io.stderr:write(string.format(
    '{"requests": %d, "us": %d, "p50": %d, "p99": %d, "refused": %d, "broken": %d}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.status, e.connect + e.read + e.write + e.timeout))
end
"""


@dataclass(frozen=True)
class System:
    """One server under load: its URL, the request bodies, and the processes whose CPU time counts."""

    url: str
    bodies: Path
    pids: Callable[[], list[int]]

    def cpu(self) -> float:
        """Return the CPU seconds of its processes."""
        return sum(cpu_seconds(pid) for pid in self.pids())


def ours(service: Service, bodies: Path) -> System:
    """Return a server of ours."""
    return System(
        f"http://127.0.0.1:{service.port}/v1/search",
        bodies,
        lambda: service.workers() or [service.process.pid],
    )


@contextmanager
def plain(directory: Path, bodies: Path) -> Iterator[System]:
    """Yield the plain server."""
    command = [sys.executable, "-m", "benchmarks.support.plain_server", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=THREADS) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            yield System(f"http://127.0.0.1:{port}/search", bodies, lambda: [process.pid])
        finally:
            process.terminate()


def elastic(stack: ExitStack, corpus: Path, bodies: Path) -> System:
    """Start an Elasticsearch node, index a corpus there, and return it as a system."""
    node = stack.enter_context(running("-Xms1g -Xmx1g -XX:-AlwaysPreTouch", in_memory=True))
    texts = [record["text"] for record in records(corpus)]
    index = text_rivals.Elasticsearch(texts, node.url).name
    return System(f"{node.url}/{index}/_search", bodies, lambda: [node.pid])


def write_bodies(path: Path, bodies: Sequence[Any]) -> Path:
    """Write the bodies of requests, one per line."""
    path.write_text("".join(json.dumps(body) + "\n" for body in bodies), encoding="utf-8")
    return path


def load(url: str, bodies: Path, connections: int, seconds: int) -> dict[str, float]:
    """Return requests per second, milliseconds (p50, p99) and the number of failed requests."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise SystemExit("wrk is missing: install it (Debian's package wrk)")
    script = bodies.with_name("post.lua")
    script.write_text(SCRIPT, encoding="utf-8")
    how = ["-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(script)]
    process = subprocess.run(
        [wrk, *how, url, "--", str(bodies)], capture_output=True, text=True, timeout=seconds + 90, check=True
    )
    found = json.loads(process.stderr[process.stderr.index("{") :])
    return {
        "per_s": round(found["requests"] / found["us"] * 1e6, 1),
        "p50_ms": round(found["p50"] / 1000, 2),
        "p99_ms": round(found["p99"] / 1000, 2),
        "requests": found["requests"],
        "failed": found["refused"] + found["broken"],
    }


def measure(systems: dict[str, System]) -> dict[str, Any]:
    """Return the best round of each system for each number of connections."""
    for system in systems.values():
        load(system.url, system.bodies, 8, 2)  # this warms up all systems
    found: dict[str, Any] = {name: {} for name in systems}
    for connections in CONNECTIONS:
        for number in range(ROUNDS):
            for name in list(systems)[:: (1, -1)[number % 2]]:
                system, before = systems[name], systems[name].cpu()
                one = load(system.url, system.bodies, connections, SECONDS)
                one["cpu_ms"] = round(1000 * (system.cpu() - before) / max(1, one["requests"]), 2)
                best = found[name].setdefault(str(connections), one)
                if one["per_s"] > best["per_s"]:
                    found[name][str(connections)] = one
                print(f"{name:<22} {connections:>3} connections", one, file=sys.stderr, flush=True)
    return found


def command_line(directory: Path, service: Service, text: str) -> dict[str, float]:
    """Return the CPU seconds of one dense query on the command line, with and without a server: best of three."""
    url = f"http://127.0.0.1:{service.port}"
    ask = [sys.executable, "-m", "linker", "search", str(directory), text, "--mode", "dense"]
    cases = {"alone": ask, "with --server": [*ask, "--server", url]}
    return {name: round(min(_cpu_of(command) for _ in range(3)), 3) for name, command in cases.items()}


def _cpu_of(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=THREADS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def ratios(found: dict[str, Any], rival: str) -> dict[str, Any]:
    """Return our throughput and p99 as multiples of a rival's, by connections."""
    return {
        c: {
            "throughput": round(found["linker"][c]["per_s"] / theirs["per_s"], 2),
            "p99": round(found["linker"][c]["p99_ms"] / theirs["p99_ms"], 3),
        }
        for c, theirs in found[rival].items()
    }


def dense(directory: Path, work: Path, queries: list[str]) -> dict[str, Any]:
    """Measure vector search next to the plain server."""
    bodies = write_bodies(work / "dense.jsonl", [_body(q, "dense") for q in queries])
    simple = write_bodies(work / "plain.jsonl", [{"text": q, "k": K} for q in queries])
    with (
        serving(directory, environment=THREADS) as one,
        serving(directory, "--workers", "2", environment=THREADS) as two,
        plain(directory, simple) as rival,
    ):
        systems = {
            "linker": ours(one, bodies),
            "linker, 2 workers": ours(two, bodies),
            "FastAPI and faiss": rival,
        }
        found = measure(systems)
    return {"dense": found, "dense_ratios": ratios(found, "FastAPI and faiss")}


def commands(directory: Path, work: Path, queries: list[str]) -> dict[str, Any]:
    """Measure the cost of a query on the command line."""
    with serving(directory, environment=THREADS) as service:
        return {"command_line_cpu_s": command_line(directory, service, queries[0])}


def bm25(directory: Path, work: Path, queries: list[str]) -> dict[str, Any]:
    """Measure BM25 next to Elasticsearch."""
    bodies = write_bodies(work / "bm25.jsonl", [_body(q, "bm25") for q in queries])
    matches = [{"query": {"match": {"body": q}}, "size": K, "_source": False} for q in queries]
    other = write_bodies(work / "elastic.jsonl", matches)
    (corpus,) = work.glob(f"{directory.name.partition('-')[2]}-sentences.jsonl")
    with ExitStack() as stack:
        service = stack.enter_context(serving(directory, environment=THREADS))
        found = measure({"linker": ours(service, bodies), "Elasticsearch": elastic(stack, corpus, other)})
    return {"bm25": found}


def mix(directory: Path, work: Path, queries: list[str]) -> dict[str, Any]:
    """Measure small searches of one token next to the worst mix that another token may send.

    A second server over the same index, which gets no other requests, is queried in the same way at the same time:
    its waits are due only to the load of the machine.
    """
    reader, other = "r" * 32, "o" * 32
    tokens = work / "tokens"
    tokens.write_text(f"{reader} read reader\n{other} read other\n{'a' * 32}\n")
    tokens.chmod(0o600)
    options = "--token-file", str(tokens)
    with serving(directory, *options) as service, serving(directory, *options) as idle:
        alone = waits(service.port, other, queries, 10)
        with attack(service.port, reader, queries, directory.name) as counts, ThreadPoolExecutor(2) as pool:
            time.sleep(5)
            measured = [pool.submit(waits, s.port, other, queries, MIX_SECONDS) for s in (service, idle)]
            during, elsewhere = (future.result() for future in measured)
    return {
        "alone": alone, "beside": during, "beside_on_an_idle_server": elsewhere,
        "load_average": round(os.getloadavg()[0], 1), "answers_of_the_mix": dict(sorted(counts.items())),
    }  # fmt: skip


def _body(text: str, mode: str) -> dict[str, Any]:
    return {"text": text, "k": K, "mode": mode, "documents": False}


PARTS = {"dense": dense, "commands": commands, "bm25": bm25, "mix": mix}


@benchmark(work=WORK, sentences=100_000, only=(Commas(PARTS), "some of dense,commands,bm25,mix"))
def measured(options: Arguments) -> None:
    """Measure the parts and record each; parts may be measured separately."""
    directory, queries = make_index(options.work, options.sentences), statements()
    for part in options.only:
        name = "serve_mix" if part == "mix" else "serve"
        before, found = recorded(name), PARTS[part](directory, options.work, queries)
        print(record(name, {**before, "documents": options.sentences, **found}, SEED))
