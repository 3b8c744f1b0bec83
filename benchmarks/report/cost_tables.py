"""What large collections cost, computed from measured rates: for docs/scale-out.md and docs/store.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

DOCUMENTS = 10**8
PRICE = 0.04  # of a CPU-hour, assumed, in any currency
CPUS = 64
ENCODERS = {
    "bag": "bag of word vectors",
    "star 4 x 32, 128 dimensions": "star, 4 × 32, 128 dimensions",
    "star, preset recommended": "star, recommended",
    "star, preset recommended, compiled, bfloat16": "the same, compiled and in bfloat16",
    "star, preset paper (10 x 30)": "star, paper's",
    "minilm@256": "MiniLM, cut at 256 tokens",
}
PEAKS = {
    "build": "build",
    "query": "a process that opened it and ran hybrid queries",
    "remove a tenth and compact": "removal of a tenth, then compaction",
    "query after it": "the same queries after that",
}


def encoding(results: Any) -> Iterator[str]:
    """CPU-hours, hours and price of encoding 100 million documents."""
    yield (
        f"| encoder | documents per CPU-second, of 256 / 1,024 tokens | CPU-hours for 10⁸ | hours on {CPUS} CPUs "
        f"| price at {PRICE} per CPU-hour |"
    )
    yield "|---|---|---|---|---|"
    for key, name in ENCODERS.items():
        rates = [results[key][f"{n} tokens"] for n in (256, 1024) if f"{n} tokens" in results[key]]
        hours = [DOCUMENTS / rate / 3600 for rate in rates]
        cells = [
            [f"{rate:,.0f}" for rate in rates], [f"{h:,.0f}" for h in hours], [f"{h / CPUS:.1f}" for h in hours],
            [f"{h * PRICE:,.1f}" for h in hours],
        ]  # fmt: skip
        yield f"| {name} | {' | '.join(' / '.join(cell) for cell in cells)} |"


def memory(results: Any) -> Iterator[str]:
    """Peak memory of one million documents, by kind of vectors."""
    kinds = {kind: row for kind, row in results["memory"].items() if kind in ("flat", "auto")}
    yield f"| peak in MiB: resident / of which anonymous | {' | '.join(f'`--vectors {kind}`' for kind in kinds)} |"
    yield "|---" * (1 + len(kinds)) + "|"
    for key, name in PEAKS.items():
        cells = [
            f"{r[key]['peak_rss_mib']:,.0f} / {r[key]['peak_anonymous_mib']:,.0f}" for r in kinds.values()
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def shards(results: Any) -> Iterator[str]:
    """Latencies and throughput by how many directories hold the same documents."""
    yield (
        f"{results['sentences']:,} sentences with 128-dimensional vectors, hybrid search, k = {results['k']}; p50 / "
        "p99 of the critical path in ms of CPU time, since other work disturbed the clock. All answers are the same:"
    )
    yield ""
    yield "| directories | one core | two cores | CPU per query | two cores, times as fast as one directory on one |"
    yield "|---|---|---|---|---|"
    for count in sorted({int(name.split()[0]) for name in results["single"]}):
        one, two = (results["single"][f"{count} on {cores}"] for cores in (1, 2))
        cells = [f"{r['path']['p50_ms']:.1f} / {r['path']['p99_ms']:.1f}" for r in (one, two)]
        gain = results["gain"][f"{count} on 2"]["times_one"]
        yield f"| {count} | {' | '.join(cells)} | {one['cpu_ms']:.1f} | {gain:.2f} |"


def watch(results: Any) -> Iterator[str]:
    """Posts matched per CPU-second, and behind a pipe: how many a second by the clock, and how late."""
    yield "| search | seeds | posts per CPU-second | with a link | behind a pipe: posts a second | late by p50 / p99, ms |"
    yield "|---|---|---|---|---|---|"
    for row in results["rows"]:
        pipe = row.get("firehose")
        behind = (
            f"{pipe['matched_per_s']:,} (load {pipe['load_1_min']:.0f}) | {pipe['p50_ms']:,.0f} / {pipe['p99_ms']:,.0f}"
            if pipe
            else "not tried | –"
        )
        cells = f"{row['seeds']:,} | {row['posts_per_cpu_s']:,} | {row['matched_share']:.0%}"
        yield f"| {row['search']} | {cells} | {behind} |"


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {
    "cluster": cluster,
    "encode.cost": encoding,
    "faults.memory": memory,
    "shards": shards,
    "watch": watch,
}
