"""What faults of a cluster's nodes do, and what a cluster of 10⁸ or 10¹⁰ documents takes: for docs/."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.report.cost_tables import PRICE
from benchmarks.support.common import RESULTS

CORES, CACHE, DISK, FULL = (
    16,
    32 * 2**30,
    2e12,
    0.75,
)  # of a node: bytes for the page cache and of disk, share used
COPIES, SHARD, BUSY, MONTH = (
    2,
    50e9,
    0.5,
    730,
)  # of each shard, its bytes, share of CPU time for searches, hours
DIM, LINKS = (
    128,
    2 * 32 * 4,
)  # bytes of a vector's links in the lowest layer of the graph, which is almost all
SIDES = {"all": "", "cut": "; clients of that node alone"}


def faults(results: Any) -> Iterator[str]:
    """What was lost and wrong, and for how long calls failed, by fault."""
    yield (
        f"Three nodes of {_heap(results)} MiB of heap, each in a network namespace of its own; two threads add and "
        f"delete, two search. The disk that is filled has {results['disk_mib']} MiB. *Until*: seconds from the "
        "beginning of the fault, or from its end, to the last failure; *silent*: the longest time in which one of the "
        "clients had no success."
    )
    yield ""
    yield (
        "| fault, its seconds; shards × copies | acknowledged changes | lost or undone | wrong answers "
        "| searches: failed, until; silent | changes: failed, until; silent | after it: searches failed; changes "
        "| whole again after |"
    )
    yield "|---|---|---|---|---|---|---|---|"
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
    """Return how many calls failed of how many, until when, and how long a client had no success."""
    if not calls["calls"]:
        return "none ended"
    text = f"{calls['failed']:,} of {calls['calls']:,}"
    if calls["failed"]:
        text += f", {calls['failing_s']:.0f} s"
    return f"{text}; {calls['silent_s']:.0f} s" if silent else text


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
    yield ""
    yield "| | 10⁸ documents | 10¹⁰ documents |"
    yield "|---|---|---|"
    sides = [_estimate(documents, size, ms / 1000, built) for documents in (1e8, 1e10)]
    for name in sides[0]:
        yield f"| {name} | {' | '.join(side[name] for side in sides)} |"


def _growth() -> float:
    """Return the power of the number of documents with which the servers' CPU time per BM25 query grows."""
    found = json.loads((RESULTS / "elastic.json").read_text(encoding="utf-8"))["results"].values()
    small, large = [(r["documents"], r["rivals"]["elasticsearch"]["single_server_ms_a_query"]) for r in found]
    return math.log(large[1] / small[1]) / math.log(large[0] / small[0])


def _estimate(documents: float, size: int, seconds: float, built: Any) -> dict[str, str]:
    """Return the rows of one number of documents; `seconds` are of CPU time per query and shard."""
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


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {"cluster_faults": faults, "cluster.paper": paper}
