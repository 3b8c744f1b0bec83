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


def opening(results: Any) -> Iterator[str]:
    """How long several directories take to open as one index, and took an earlier version."""
    rows = results["rows"]
    yield (
        f"{results['shards']} directories of {results['size']:,} sentences with {results['dim']}-dimensional vectors; "
        f"the least of {results['turns']} turns, in which the versions alternate, beside other work:"
    )
    yield ""
    yield "| | CPU-seconds to open, one core | seconds by the clock, all cores |"
    yield "|---|---|---|"
    for verify, what in ((True, "with checksums"), (False, "without")):
        *before, now = [row for row in rows if row["verify"] is verify]
        cells = [" → ".join(f"{row[key]:.2f}" for row in (*before, now)) for key in ("cpu_s", "s")]
        yield f"| {what} | {' | '.join(cells)} |"


def watch(results: Any) -> Iterator[str]:
    """Posts matched per CPU-second, and behind a pipe: how many a second by the clock, and how late."""
    yield "| search | seeds | posts per CPU-second | linked | posts a second behind a pipe | late by p50 / p99, ms |"
    yield "|---|---|---|---|---|---|"
    for row in results["rows"]:
        behind = "not tried | –"
        if pipe := row.get("firehose"):
            behind = f"{pipe['matched_per_s']:,} (load {pipe['load_1_min']:.0f}) | "
            behind += f"{pipe['p50_ms']:,.0f} / {pipe['p99_ms']:,.0f}"
        cells = f"{row['seeds']:,} | {row['posts_per_cpu_s']:,} | {row['matched_share']:.0%}"
        yield f"| {row['search']} | {cells} | {behind} |"


INDEX_COLUMNS = (
    "documents per second | per CPU-second | bytes per document | p50 / p99 in ms, 1 client | 8 clients "
    "| queries per second, 8 clients | CPU in ms per query, 8 clients | recall@10 of the vectors |"
)


def cluster(results: Any) -> Iterator[str]:
    """Builds and searches of an index on one Elasticsearch node, beside one in a directory."""
    yield (
        f"{results['sentences']:,} sentences with 128-dimensional vectors, one node with 2 GiB of heap, hybrid search, "
        f"k = {results['k']}. Other work disturbed the clock; CPU is that of the client and the server together:"
    )
    yield from ("", f"| index | {INDEX_COLUMNS}", "|---|---|---|---|---|---|---|---|---|")
    for name in ("directory, exact", "cluster, HNSW"):
        yield f"| {name} | {_index(results[name])} |"


def opensearch(results: Any) -> Iterator[str]:
    """Builds and searches of an index on one node of OpenSearch, and on one of Elasticsearch."""
    yield (
        f"{results['sentences']:,} sentences with 128-dimensional vectors and HNSW, one node with 512 MiB of heap, "
        f"one server after the other, hybrid search, k = {results['k']}. Other work disturbed the clock; CPU is that "
        "of the client and the server together:"
    )
    yield from ("", f"| server | {INDEX_COLUMNS}", "|---|---|---|---|---|---|---|---|---|")
    for row in results["rows"]:
        yield f"| {row['server']} | {_index(row)} |"


def _index(found: Any) -> str:
    """Return the cells of INDEX_COLUMNS."""
    built, one, eight = found["build"], found["search"]["1"], found["search"]["8"]
    return (
        f"{built['documents_per_s']:,} | {built['documents_per_cpu_s']:,} | {built['bytes_per_document']:,} "
        f"| {one['p50_ms']:.1f} / {one['p99_ms']:.1f} | {eight['p50_ms']:.1f} / {eight['p99_ms']:.1f} "
        f"| {eight['queries_per_s']:.0f} | {eight['cpu_ms']:.1f} | {found['recall']:.3f}"
    )


def cluster_build(results: Any) -> Iterator[str]:
    """Builds on one Elasticsearch node by one process, and by Ray's workers."""
    yield (
        f"{results['sentences']:,} sentences, encoded by an untrained star ({results['encoder'][5:]}) and "
        "written with HNSW to one node with 512 MiB of heap, all on one machine with other work, which disturbed the "
        "clock. Ray's start is not counted in the documents per second, and its processes are in the CPU time:"
    )
    yield ""
    yield (
        "| workers | documents per second | per CPU-second | CPU-seconds of the command | of Ray and its workers "
        "| of the server | seconds until Ray has started |"
    )
    yield "|---|---|---|---|---|---|---|"
    for row in results["rows"]:
        cpu, many = row["cpu_s"], row["workers"]
        cells = f"{row['documents_per_s']:,} | {row['documents_per_cpu_s']:,} | {cpu['lead']:.0f} "
        cells += f"| {cpu['workers']:.0f} | {cpu['server']:.0f}" if many else f"| – | {cpu['server']:.0f}"
        yield f"| {many or 'without Ray'} | {cells} | {row['ray_start_s'] if many else '–'} |"


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {
    "cluster": cluster,
    "cluster_build": cluster_build,
    "encode.cost": encoding,
    "faults.memory": memory,
    "opening": opening,
    "opensearch": opensearch,
    "shards": shards,
    "watch": watch,
}
