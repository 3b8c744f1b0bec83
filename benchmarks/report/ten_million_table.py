"""What millions of documents in shards cost on one machine, how that grows, and what it says of Elasticsearch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.support.common import RESULTS

PARTS = {
    "vectors": "vectors",
    "documents": "documents",
    "text": "BM25",
    "graph": "codes in cells",
    "ids": "ids",
}


def built(results: Any) -> Iterator[str]:
    """What building costs a document, in CPU time and bytes."""
    shards, size = results["shards"], results["size"]
    anew = [shard["recoded"] for shard in shards if "recoded" in shard]
    rates = [size / shard["build_cpu_s"] for shard in shards]
    wall = [size / shard["build_s"] for shard in shards]
    parts = {name: sum(_bytes(shard)[name] for shard in shards) / size / len(shards) for name in PARTS}
    listed = ", ".join(f"{value:.0f} of {PARTS[name]}" for name, value in parts.items())
    yield (
        f"{len(shards)} shards of {size:,} documents ({results['real']:,} of all have real texts), "
        f"{results['dimensions']} dimensions, built one after the other by processes of one thread: "
        f"{min(rates):,.0f} to {max(rates):,.0f} documents per CPU-second, and {min(wall):,.0f} to {max(wall):,.0f} "
        f"per second by the clock of a busy machine; {sum(parts.values()):,.0f} bytes a document ({listed}). "
        f"A builder's memory peaks at {max(s['peak_anonymous_mib'] for s in shards):,.0f} MiB, and at "
        f"{max(s['peak_rss_mib'] for s in shards):,.0f} MiB with the pages of mapped files."
    )
    if anew:
        seconds = [shard["cpu_s"] for shard in anew]
        yield (
            "These builds made codes without cells, as `auto` then did at this size; the cells were made after them, "
            f"in {min(seconds):.0f} to {max(seconds):.0f} CPU-seconds a shard."
        )


def _bytes(shard: Any) -> dict[str, int]:
    found: dict[str, int] = shard["bytes"]
    return found | {"graph": shard["recoded"]["bytes"]} if "recoded" in shard else found


def asked(results: Any) -> Iterator[str]:
    """What searching them costs, by how many there are."""
    stages = results["stages"]
    sizes = " | ".join(f"{stage['documents']:,}" for stage in stages)
    yield f"| documents | {sizes} | power of the growth |"
    yield "|---" * (len(stages) + 2) + "|"
    rows: dict[str, tuple[Callable[[Any], str], str]] = {
        "hybrid, one core: CPU ms, p50 / p99": (lambda s: _both(s["alone"]["hybrid"]["cpu"]), "hybrid"),
        "BM25 alone": (lambda s: _both(s["alone"]["bm25"]["cpu"]), "bm25"),
        "vectors alone": (lambda s: _both(s["alone"]["dense"]["cpu"]), "dense"),
        "recall of the ten best by vectors": (lambda s: f"{s['recall']:.3f}", ""),
        "CPU-seconds to open": (lambda s: f"{s['open']['cpu_s']:.1f}", "seconds to open"),
        "… without comparing checksums": (
            lambda s: f"{s['open_unverified']['cpu_s']:.1f}",
            "seconds to open, unverified",
        ),
        "memory in use, MiB: anonymous / with mapped pages": (
            lambda s: f"{s['in_use_mib']['anonymous']:,} / {s['in_use_mib']['rss']:,}",
            "memory, anonymous",
        ),
    }
    for clients in stages[0]["clients"]:
        name = f"hybrid, {clients} client{'s' if clients != '1' else ''} at once, by the clock: ms, p50 / p99"
        rows[name] = (lambda s, n=clients: _both(s["clients"][n]), "")  # type: ignore[misc] # a lambda's default
    for name, (show, growth) in rows.items():
        powers = ", ".join(f"{power:.2f}" for power in results["growth"].get(growth, ()))
        yield f"| {name} | {' | '.join(show(stage) for stage in stages)} | {powers} |"


def tuned(results: Any) -> Iterator[str]:
    """What the search by vectors costs and finds by its settings."""
    curve = results["curve"]
    yield f"Of {curve['documents']:,} vectors, one core, k = {results['k']}:"
    yield ""
    yield "| share of the cells, rows rescored | CPU ms, p50 / p99 | recall |"
    yield "|---|---|---|"
    for point in curve["points"]:
        chosen = " (default)" if point["settings"] == curve["default"] else ""
        share, refine = round(1 / point["settings"]["probed"]), point["settings"]["refine"]
        yield f"| 1/{share}, {refine:g} × k{chosen} | {_both(point['cpu'])} | {point['recall']:.3f} |"


def _both(figures: Any) -> str:
    return f"{figures['p50_ms']:,.1f} / {figures['p99_ms']:,.1f}"


def elastic(results: Any) -> Iterator[str]:
    """What ten million documents would take on Elasticsearch, by what was measured on fewer."""
    read = {
        name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["results"]
        for name in ("cluster", "cluster_build")
    }
    documents = results["size"] * len(results["shards"])
    rate, size = (
        read["cluster_build"]["rows"][0],
        read["cluster"]["cluster, HNSW"]["build"]["bytes_per_document"],
    )
    yield (
        f"**On Elasticsearch this was not run.** At the {rate['documents_per_s']:,} documents per second of one "
        f"process on this machine ([above](#writing-by-many)), {documents:,} documents would take "
        f"{documents / rate['documents_per_s'] / 3600:.0f} hours, or "
        f"{documents / rate['documents_per_cpu_s'] / 3600:.1f} CPU-hours, and at {size:,} bytes each "
        f"{documents * size / 1e9:.0f} GB."
    )


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {
    "ten_million.built": built,
    "ten_million.asked": asked,
    "ten_million.tuned": tuned,
    "ten_million.elastic": elastic,
}
