"""The tables of the service under load and in the soak, for docs/http.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def dense(results: Any) -> Iterator[str]:
    """Vector search beside the plain server."""
    about = f"{results['documents']:,} sentences, k = 10"
    yield f"**Vector search**, {about}; a cell is answers per second, p50 / p99 in ms:"
    yield ""
    yield from _systems(results["dense"])
    yield ""
    at = results["dense_ratios"]["64"]
    yield (
        f"At 64 connections: {at['throughput']} × the throughput (target: ≥ 2) and {at['p99']} × the p99 "
        "(target: ≤ 1.1) of FastAPI and faiss."
    )


def bm25(results: Any) -> Iterator[str]:
    """BM25 beside Elasticsearch."""
    if "bm25" not in results:
        return
    yield f"**BM25**, the same {results['documents']:,} sentences:"
    yield ""
    yield from _systems(results["bm25"])


def commands(results: Any) -> Iterator[str]:
    """What one dense query costs by the command line."""
    if "command_line_cpu_s" not in results:
        return
    cost = results["command_line_cpu_s"]
    yield "| `linker search`, one dense query | CPU-seconds |"
    yield "|---|---|"
    yield f"| opening the index, loading the encoder | {cost['alone']:.2f} |"
    yield f"| `--server` | {cost['with --server']:.2f} |"


def mix(results: Any) -> Iterator[str]:
    """Small searches of one token, alone and beside the worst mix of another."""
    yield f"{results['documents']:,} sentences; five searches a second of one token:"
    yield ""
    yield "| | p50 / p99 / slowest, ms | answered |"
    yield "|---|---|---|"
    rows = {
        "alone": "alone",
        "beside": "beside the worst mix of another token",
        "beside_on_an_idle_server": "at the same time, on a second server that gets nothing else",
    }
    for name, title in rows.items():
        row = results[name]
        times = " / ".join(f"{row[f'{p}_ms']:,.0f}" for p in ("p50", "p99", "p100"))
        yield f"| {title} | {times} | {row['answered']} of {row['searches']} |"
    p99 = results["beside"]["p99_ms"]
    yield ""
    met = "met" if p99 <= 1000 else "missed"
    yield (
        f"Target: p99 ≤ 1,000 ms, which is {met} ({p99:,.0f} ms). What the second server needs is the machine's load "
        f"(average {results['load_average']})."
    )


def soak(results: Any) -> Iterator[str]:
    """What the soak counted."""
    memory = results["oldest_worker_pss_mib"]
    rows = (
        ("minutes", results["minutes"]),
        ("workers killed", results["kills"]),
        ("documents put or deleted", results["changes"]),
        ("compactions", results["compactions"]),
        ("answers compared with the oracle", f"{results['answers']:,}"),
        ("wrong answers", results["wrong"]),
        ("right answers of a commit before the last", results["stale"]),
        ("failed requests", results["failed"]),
        ("failed requests that were under way at a kill", results["failed_under_way_at_a_kill"]),
        ("p50 / p99 / slowest, ms", " / ".join(f"{results['ms'][p]:.0f}" for p in ("p50", "p99", "p100"))),
        ("memory of the oldest worker (PSS), second third", f"{memory['second_third']:.0f} MiB"),
        ("memory of the oldest worker (PSS), last third", f"{memory['last_third']:.0f} MiB"),
    )
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {name} | {value} |" for name, value in rows)


def _systems(found: Any) -> Iterator[str]:
    connections = list(next(iter(found.values())))
    titles = [f"{c} connections" if c != "1" else "1 connection" for c in connections]
    yield f"| | {' | '.join(titles)} | CPU per answer at 64 |"
    yield f"|---|{'---|' * (len(connections) + 1)}"
    for name, rows in found.items():
        cells = [
            f"{rows[c]['per_s']:,.0f}, {rows[c]['p50_ms']:.0f} / {rows[c]['p99_ms']:.0f}" for c in connections
        ]
        yield f"| {name} | {' | '.join(cells)} | {rows['64']['cpu_ms']:.2f} ms |"


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {
    "serve.dense": dense,
    "serve.bm25": bm25,
    "serve.commands": commands,
    "serve_mix": mix,
    "soak": soak,
}
