"""Tables for the pages: the service under load, clusters, the image, and what faults and attacks did."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from benchmarks.report.cells import renders
from benchmarks.report.cost_tables import PRICE
from benchmarks.support.common import recorded


@renders("serve.dense")
def dense(results: Any) -> Iterator[str]:
    """Vector search next to the plain server."""
    about = f"{results['documents']:,} sentences, k = 10"
    yield f"**Vector search**, {about}; a cell is answers per second, p50 / p99 in ms:"
    yield from _systems(results["dense"])
    at = results["dense_ratios"]["64"]
    yield (
        f"At 64 connections: {at['throughput']} × the throughput (target: ≥ 2) and {at['p99']} × the p99 "
        "(target: ≤ 1.1) of FastAPI and faiss."
    )


@renders("serve.bm25")
def bm25(results: Any) -> Iterator[str]:
    """BM25 next to Elasticsearch."""
    if "bm25" not in results:
        return
    yield f"**BM25**, the same {results['documents']:,} sentences:"
    yield from _systems(results["bm25"])


@renders("serve.commands")
def commands(results: Any) -> Iterator[str]:
    """The cost of one dense query on the command line."""
    if "command_line_cpu_s" not in results:
        return
    cost = results["command_line_cpu_s"]
    yield "| `linker search`, one dense query | CPU-seconds |"
    yield f"| opening the index, loading the encoder | {cost['alone']:.2f} |"
    yield f"| `--server` | {cost['with --server']:.2f} |"


@renders("serve_mix")
def mix(results: Any) -> Iterator[str]:
    """Small searches of one token, alone and next to the worst mix of another."""
    yield f"{results['documents']:,} sentences; five searches a second of one token:"
    yield "| | p50 / p99 / slowest, ms | answered |"
    rows = {
        "alone": "alone",
        "beside": "next to the worst mix of another token",
        "beside_on_an_idle_server": "at the same time, on a second server that gets nothing else",
    }
    for name, title in rows.items():
        row = results[name]
        times = " / ".join(f"{row[f'{p}_ms']:,.0f}" for p in ("p50", "p99", "p100"))
        yield f"| {title} | {times} | {row['answered']} of {row['searches']} |"
    p99 = results["beside"]["p99_ms"]
    met = "met" if p99 <= 1000 else "missed"
    yield (
        f"Target: p99 ≤ 1,000 ms, which is {met} ({p99:,.0f} ms). The times of the second server show the effect of "
        f"the machine's load (average {results['load_average']})."
    )


@renders("soak")
def soak(results: Any) -> Iterator[str]:
    """Counts from the soak test."""
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
    yield from (f"| {name} | {value} |" for name, value in rows)


def _systems(found: Any) -> Iterator[str]:
    connections = list(next(iter(found.values())))
    titles = [f"{c} connections" if c != "1" else "1 connection" for c in connections]
    yield f"| | {' | '.join(titles)} | CPU per answer at 64 |"
    for name, rows in found.items():
        cells = [
            f"{rows[c]['per_s']:,.0f}, {rows[c]['p50_ms']:.0f} / {rows[c]['p99_ms']:.0f}" for c in connections
        ]
        yield f"| {name} | {' | '.join(cells)} | {rows['64']['cpu_ms']:.2f} ms |"


# Per node: cores, bytes of page cache, bytes of disk, and the share of the disk that is used.
CORES, CACHE, DISK, FULL = 16, 32 * 2**30, 2e12, 0.75
# Copies of a shard, bytes of a shard, share of the CPU time for searches, hours of a month.
COPIES, SHARD, BUSY, MONTH = 2, 50e9, 0.5, 730
# Dimension of a vector; bytes of its links in the graph's lowest layer, which has almost all links.
DIM, LINKS = 128, 2 * 32 * 4
SIDES = {"all": "", "cut": "; clients of that node alone"}


@renders("cluster_faults")
def faults(results: Any) -> Iterator[str]:
    """Lost and wrong results, and for how long calls failed, by fault."""
    yield (
        f"Three nodes of {_heap(results)} MiB of heap, each in a network namespace of its own; two threads add and "
        f"delete, two search. The disk that is filled has {results['disk_mib']} MiB. *Until*: seconds from the "
        "beginning of the fault, or from its end, to the last failure; *silent*: the longest time in which one of the "
        "clients had no success."
    )
    yield (
        "| fault, its seconds; shards × copies | acknowledged changes | lost or undone | wrong answers "
        "| searches: failed, until; silent | changes: failed, until; silent | after it: searches failed; changes "
        "| whole again after |"
    )
    for name, case in results["cases"].items():
        end = case["end"]
        changes = end["acknowledged_additions"] + end["acknowledged_deletions"]
        lost = sum(end[key] for key in ("lost", "resurrected", "never_written", "other_text"))
        for who, which in SIDES.items():
            if who not in case:
                continue
            side = case[who]
            title = f"{name}, {case['seconds']:g}; {case['shards']} × {case['replicas'] + 1}{which}"
            searches, writes = side["searches"], side["writes"]
            first = [f"{changes:,}", str(lost)] if who == "all" else ["", ""]
            cells = [
                title, *first, str(side["wrong"]), _failed(searches["fault"], True), _failed(writes["fault"], True),
                f"{_failed(searches['after'])}; {_failed(writes['after'])}",
                f"{case['whole_again_s']:.0f} s" if who == "all" else "",
            ]  # fmt: skip
            yield f"| {' | '.join(cells)} |"


def _heap(results: Any) -> str:
    return str(results["heap"].partition("-Xms")[2].partition("m")[0])


def _failed(calls: Any, silent: bool = False) -> str:
    """Return failed and total calls, until when calls failed, and the longest time a client had no success."""
    if not calls["calls"]:
        return "none ended"
    text = f"{calls['failed']:,} of {calls['calls']:,}"
    if calls["failed"]:
        text += f", {calls['failing_s']:.0f} s"
    return f"{text}; {calls['silent_s']:.0f} s" if silent else text


@renders("cluster.paper")
def paper(results: Any) -> Iterator[str]:
    """Nodes, disk, time and money for 10⁸ and 10¹⁰ documents, computed from the rates of one small node."""
    found, growth = results["cluster, HNSW"], _growth()
    size, built = found["build"]["bytes_per_document"], found["build"]
    shard = SHARD / size
    ms = found["search"]["8"]["cpu_ms"] * (shard / results["sentences"]) ** growth
    yield (
        f"Assumed: nodes with {CORES} cores, {CACHE >> 30} GiB of page cache and {DISK / 1e12:g} TB of disk, filled to "
        f"{FULL:.0%}; {COPIES} copies of each shard, shards of {SHARD / 1e9:g} GB; {DIM} dimensions; {PRICE} per "
        f"CPU-hour; half of the CPU time for searches. Measured on {results['sentences']:,} documents: {size:,} bytes "
        f"and 1/{built['documents_per_cpu_s']:,} CPU-seconds per document, {found['search']['8']['cpu_ms']:g} CPU-ms "
        f"per query. A query's CPU time is taken to grow with the shard's documents to the power {growth:.2f}, as "
        f"BM25's does from 89,000 to 738,000 documents, to {ms:.0f} ms for each shard of {shard / 1e6:.0f} million:"
    )
    yield "| | 10⁸ documents | 10¹⁰ documents |"
    sides = [_estimate(documents, size, ms / 1000, built) for documents in (1e8, 1e10)]
    for name in sides[0]:
        yield f"| {name} | {' | '.join(side[name] for side in sides)} |"


def _growth() -> float:
    """Return the exponent with which the servers' CPU time per BM25 query grows in the number of documents."""
    found = recorded("elastic").values()
    small, large = [(r["documents"], r["rivals"]["elasticsearch"]["single_server_ms_a_query"]) for r in found]
    return math.log(large[1] / small[1]) / math.log(large[0] / small[0])


def _estimate(documents: float, size: int, seconds: float, built: Any) -> dict[str, str]:
    """Return the rows for one number of documents; `seconds` is CPU time per query and shard."""
    disk = documents * COPIES * size
    by_disk = math.ceil(disk / (DISK * FULL))
    by_graph = math.ceil(documents * COPIES * (4 * DIM + LINKS) / CACHE)
    by_bytes = math.ceil(documents * COPIES * (DIM + LINKS) / CACHE)
    nodes, shards = max(by_disk, by_graph), math.ceil(documents * size / SHARD)
    hours = documents * COPIES / built["documents_per_cpu_s"] / 3600 / (nodes * CORES)
    writer = documents * built["client_cpu_s"] / built["documents"] / 3600
    return {
        "disk, all copies: N × copies × bytes": f"{disk / 1e12:,.1f} TB",
        "nodes that the disks take": f"{by_disk:,}",
        "nodes whose page cache holds the graphs: N × copies × (4 × dim + 256) bytes": f"**{by_graph:,}**",
        "the same with `int8_hnsw`: N × copies × (dim + 256)": f"{by_bytes:,}",
        "primary shards": f"{shards:,}",
        f"hours to build on {CORES} cores of each of these nodes": f"{hours:,.1f}",
        "CPU-hours of the writers": f"{writer:,.1f}",
        "CPU-seconds per query: shards × the above": f"{shards * seconds:,.1f}",
        "queries per second": f"{nodes * CORES * BUSY / (shards * seconds):,.0f}",
        f"money per month: nodes × {CORES} × {PRICE} × {MONTH}": f"{nodes * CORES * PRICE * MONTH:,.0f}",
    }


@renders("image")
def image(results: Any) -> Iterator[str]:
    """The size of the environment, and its largest packages."""
    size, base = results["environment_mb"], results["base_mb_at_most"]
    yield "| part of the image | MB |"
    yield f"| **environment, all of it** | {size:.0f} |"
    for name, megabytes in results["largest_mb"].items():
        yield f"| of which `{name}` | {megabytes:.0f} |"
    yield f"| base image, rounded up, not measured | {base} |"


@renders("faults.attacks")
def attacks(results: Any) -> Iterator[str]:
    """Kills, corruptions, hostile folders and fuzzed inputs: how many of each, and how many ended wrongly."""
    kills = results.get("kills", {}).values()
    deaths = sum(row.get("killed_and_right", 0) + row.get("wrong", 0) for row in kills)
    rows = [("processes killed in the middle of a change", deaths, sum(row.get("wrong", 0) for row in kills))]
    power = results.get("power", {}).values()
    rows.append(
        ("states that a power cut may leave", sum(r["states"] for r in power), sum(r["wrong"] for r in power))
    )
    corruptions = results.get("corruptions", {})
    refused = corruptions.get("refused", 0)
    rows.append(
        (
            "files of an index altered, cut or extended",
            sum(corruptions.values()),
            sum(corruptions.values()) - refused,
        )
    )
    for kind, outcomes in (
        ("index", _outcomes(results, index=True)),
        ("model", _outcomes(results, index=False)),
    ):
        wrong = sum(count for name, count in outcomes if name not in ("refused", "answered", "same"))
        if outcomes:
            rows.append(
                (f"hostile {kind} folders with right checksums", sum(count for _, count in outcomes), wrong)
            )
    fuzz = results.get("fuzz", {}).values()
    rows.append(("mutated inputs", sum(row["cases"] for row in fuzz), sum(row["failures"] for row in fuzz)))
    yield "| | tried | ended wrongly |"
    for name, tried, wrong in rows:
        yield f"| {name} | {tried:,} | {wrong:,} |"


def _outcomes(results: Any, *, index: bool) -> list[tuple[str, int]]:
    hostile = results.get("hostile", {})
    return [
        pair for kind, row in hostile.items() if kind.startswith("model: ") != index for pair in row.items()
    ]


@renders("faults.power")
def power(results: Any) -> Iterator[str]:
    """States that a power cut may leave, by change."""
    rows = results.get("power", {})
    yield "| change | system calls recorded | different states opened | changed again after it | wrong |"
    for name, r in rows.items():
        yield f"| {name} | {r['calls']:,} | {r['states']:,} | {r['made_again']:,} | {r['wrong']:,} |"
    totals = [sum(r[key] for r in rows.values()) for key in ("calls", "states", "made_again", "wrong")]
    yield f"| all | {' | '.join(f'{total:,}' for total in totals)} |"
