"""Tables for the pages: what large collections cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.report.cells import renders
from benchmarks.support.common import recorded

DOCUMENTS = 10**8
PRICE = 0.04  # assumed price of a CPU-hour, in any currency
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


@renders("encode.cost")
def encoding(results: Any) -> Iterator[str]:
    """CPU-hours, hours and price for encoding 100 million documents."""
    yield (
        f"| encoder | documents per CPU-second, of 256 / 1,024 tokens | CPU-hours for 10⁸ | hours on {CPUS} CPUs "
        f"| price at {PRICE} per CPU-hour |"
    )
    for key, name in ENCODERS.items():
        rates = [results[key][f"{n} tokens"] for n in (256, 1024) if f"{n} tokens" in results[key]]
        hours = [DOCUMENTS / rate / 3600 for rate in rates]
        cells = [
            [f"{rate:,.0f}" for rate in rates], [f"{h:,.0f}" for h in hours], [f"{h / CPUS:.1f}" for h in hours],
            [f"{h * PRICE:,.1f}" for h in hours],
        ]  # fmt: skip
        yield f"| {name} | {' | '.join(' / '.join(cell) for cell in cells)} |"


@renders("faults.memory")
def memory(results: Any) -> Iterator[str]:
    """Peak memory of one million documents, by kind of vectors."""
    kinds = {kind: row for kind, row in results["memory"].items() if kind in ("flat", "auto")}
    yield f"| peak in MiB: resident / of which anonymous | {' | '.join(f'`--vectors {kind}`' for kind in kinds)} |"
    for key, name in PEAKS.items():
        cells = [
            f"{r[key]['peak_rss_mib']:,.0f} / {r[key]['peak_anonymous_mib']:,.0f}" for r in kinds.values()
        ]
        yield f"| {name} | {' | '.join(cells)} |"


@renders("shards")
def shards(results: Any) -> Iterator[str]:
    """Latencies and throughput by the number of directories that hold the same documents."""
    yield (
        f"{results['sentences']:,} sentences with 128-dimensional vectors, hybrid search, k = {results['k']}; p50 / "
        "p99 of the critical path in ms of CPU time, since other work disturbed the clock. All answers are the same:"
    )
    yield "| directories | one core | two cores | CPU per query | two cores, times as fast as one directory on one |"
    for count in sorted({int(name.split()[0]) for name in results["single"]}):
        one, two = (results["single"][f"{count} on {cores}"] for cores in (1, 2))
        cells = [f"{r['path']['p50_ms']:.1f} / {r['path']['p99_ms']:.1f}" for r in (one, two)]
        gain = results["gain"][f"{count} on 2"]["times_one"]
        yield f"| {count} | {' | '.join(cells)} | {one['cpu_ms']:.1f} | {gain:.2f} |"


@renders("opening")
def opening(results: Any) -> Iterator[str]:
    """The time to open several directories as one index, now and in an earlier version."""
    rows = results["rows"]
    yield (
        f"{results['shards']} directories of {results['size']:,} sentences with {results['dim']}-dimensional vectors; "
        f"the fastest of {results['turns']} runs in which both versions alternate, next to other work (before → now):"
    )
    yield "| | CPU-seconds to open, one core | seconds by the clock, all cores |"
    for verify, what in ((True, "with checksums"), (False, "without")):
        *before, now = [row for row in rows if row["verify"] is verify]
        cells = [" → ".join(f"{row[key]:.2f}" for row in (*before, now)) for key in ("cpu_s", "s")]
        yield f"| {what} | {' | '.join(cells)} |"


@renders("watch")
def watch(results: Any) -> Iterator[str]:
    """Posts matched per CPU-second, and behind a pipe: posts per wall-clock second, and their delay."""
    yield "| search | seeds | posts per CPU-second | linked | posts per second behind a pipe | late by p50 / p99, ms |"
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


@renders("cluster")
def cluster(results: Any) -> Iterator[str]:
    """Builds and searches of an index on one Elasticsearch node, next to one in a directory."""
    yield (
        f"{results['sentences']:,} sentences with 128-dimensional vectors, one node with 2 GiB of heap, hybrid search, "
        f"k = {results['k']}. Other work disturbed the clock; CPU is that of the client and the server together:"
    )
    yield f"| index | {INDEX_COLUMNS}"
    for name in ("directory, exact", "cluster, HNSW"):
        yield f"| {name} | {_index(results[name])} |"


@renders("cluster_ranking")
def cluster_ranking(results: Any) -> Iterator[str]:
    """How many top tens on a server equal those of a directory, and the cost of a query."""
    yield "| documents | index | ranking | identical | CPU in ms per query, in a batch | one at a time | median in ms |"
    for row in results["rows"]:
        for name, found in row.items():
            place, _, ranking = name.partition(", ")
            if ranking:
                batch, single = (
                    sum(found[f"{kind}_{side}_ms"] for side in ("client", "server"))
                    for kind in ("batch", "single")
                )
                yield (
                    f"| {row['documents']:,} of {row['data']} | {row['server']}, {place} | {ranking} "
                    f"| {found['identical']} of {found.get('queries', row['queries'])} | {batch:.1f} | {single:.1f} "
                    f"| {found['single_p50_ms']:.1f} |"
                )


@renders("opensearch")
def opensearch(results: Any) -> Iterator[str]:
    """Builds and searches of an index on one node of OpenSearch, and on one of Elasticsearch."""
    yield (
        f"{results['sentences']:,} sentences with 128-dimensional vectors and HNSW, one node with 512 MiB of heap, "
        f"one server after the other, hybrid search, k = {results['k']}. Other work disturbed the clock; CPU is that "
        "of the client and the server together:"
    )
    yield from ("", f"| server | {INDEX_COLUMNS}")
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


@renders("cluster_build")
def cluster_build(results: Any) -> Iterator[str]:
    """Builds on one Elasticsearch node by one process, and by Ray's workers."""
    yield (
        f"{results['sentences']:,} sentences, encoded by an untrained star ({results['encoder'][5:]}) and "
        "written with HNSW to one node with 512 MiB of heap, all on one machine with other work, which disturbed the "
        "clock. Ray's start is not counted in the documents per second, and its processes are in the CPU time:"
    )
    yield (
        "| workers | documents per second | per CPU-second | CPU-seconds of the command | of Ray and its workers "
        "| of the server | seconds until Ray has started |"
    )
    for row in results["rows"]:
        cpu, many = row["cpu_s"], row["workers"]
        cells = f"{row['documents_per_s']:,} | {row['documents_per_cpu_s']:,} | {cpu['lead']:.0f} "
        cells += f"| {cpu['workers']:.0f} | {cpu['server']:.0f}" if many else f"| – | {cpu['server']:.0f}"
        yield f"| {many or 'without Ray'} | {cells} | {row['ray_start_s'] if many else '–'} |"


PARTS = {
    "vectors": "vectors",
    "documents": "documents",
    "text": "BM25",
    "graph": "codes in cells",
    "ids": "ids",
}


@renders("ten_million.built")
def built(results: Any) -> Iterator[str]:
    """The cost of building per document, in CPU time and bytes."""
    shards, size = results["shards"], results["size"]
    recoded = [shard["recoded"] for shard in shards if "recoded" in shard]
    rates = [size / shard["build_cpu_s"] for shard in shards]
    wall = [size / shard["build_s"] for shard in shards]
    parts = {name: sum(_bytes(shard)[name] for shard in shards) / size / len(shards) for name in PARTS}
    listed = ", ".join(f"{value:.0f} of {PARTS[name]}" for name, value in parts.items())
    yield (
        f"{len(shards)} shards of {size:,} documents ({results['real']:,} of all have real texts), "
        f"{results['dimensions']} dimensions, built one after the other by processes of one thread: "
        f"{min(rates):,.0f} to {max(rates):,.0f} documents per CPU-second, and {min(wall):,.0f} to {max(wall):,.0f} "
        f"per second by the clock of a busy machine; {sum(parts.values()):,.0f} bytes per document ({listed}). "
        f"A builder's memory peaks at {max(s['peak_anonymous_mib'] for s in shards):,.0f} MiB, and at "
        f"{max(s['peak_rss_mib'] for s in shards):,.0f} MiB with the pages of mapped files."
    )
    if recoded:
        seconds = [shard["cpu_s"] for shard in recoded]
        yield (
            "These builds made codes without cells, as `auto` then did at this size; the cells were made after them, "
            f"in {min(seconds):.0f} to {max(seconds):.0f} CPU-seconds per shard."
        )


def _bytes(shard: Any) -> dict[str, int]:
    found: dict[str, int] = shard["bytes"]
    return found | {"graph": shard["recoded"]["bytes"]} if "recoded" in shard else found


@renders("ten_million.asked")
def asked(results: Any) -> Iterator[str]:
    """The cost of searching, by the number of documents."""
    stages = results["stages"]
    sizes = " | ".join(f"{stage['documents']:,}" for stage in stages)
    yield f"| documents | {sizes} | power of the growth |"
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


@renders("ten_million.tuned")
def tuned(results: Any) -> Iterator[str]:
    """The cost and recall of vector search by its settings."""
    curve = results["curve"]
    yield f"Of {curve['documents']:,} vectors, one core, k = {results['k']}:"
    yield "| share of the cells, rows rescored | CPU ms, p50 / p99 | recall |"
    for point in curve["points"]:
        chosen = " (default)" if point["settings"] == curve["default"] else ""
        share, refine = round(1 / point["settings"]["probed"]), point["settings"]["refine"]
        yield f"| 1/{share}, {refine:g} × k{chosen} | {_both(point['cpu'])} | {point['recall']:.3f} |"


def _both(figures: Any) -> str:
    return f"{figures['p50_ms']:,.1f} / {figures['p99_ms']:,.1f}"


@renders("ten_million.elastic")
def elastic(results: Any) -> Iterator[str]:
    """The needs of ten million documents on Elasticsearch, extrapolated from smaller measurements."""
    read = {name: recorded(name) for name in ("cluster", "cluster_build")}
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
