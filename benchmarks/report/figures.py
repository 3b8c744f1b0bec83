"""Figures of the tables that need more than a format (sums, estimates, fitted laws): functions that templates call."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.report.cells import ENVIRONMENT, helper, short
from benchmarks.support.ast_models import READY, differences
from benchmarks.support.common import recorded
from linker.papers.all_pairs.result import RANKS
from linker.papers.reproduce import frame

Row = Mapping[str, Any]

PRICE = 0.04  # assumed price of a CPU-hour, in any currency
CODES = ("fr", "de", "ru", "tr", "zh")
ENVIRONMENT.globals |= {"PRICE": PRICE, "CODES": CODES, "RANKS": RANKS}
ENVIRONMENT.globals |= {"lines_of": frame.cells, "remarks": frame.remarks}
PARTS = {
    "vectors": "vectors",
    "documents": "documents",
    "text": "BM25",
    "graph": "codes in cells",
    "ids": "ids",
}


@helper
def per(seconds: float, count: int) -> float:
    """Return a rate per second."""
    return count / seconds


@helper
def p50_p99(of: Any) -> str:
    """Return a median and a 99th percentile in milliseconds."""
    return f"{of['p50_ms']:,.1f} / {of['p99_ms']:,.1f}"


@helper
def ten_million_bytes(results: Any) -> Mapping[str, float]:
    """Return the bytes per document of each part of an index."""
    shards = [shard["bytes"] for shard in results["shards"]]
    count = results["size"] * len(shards)
    return {title: sum(shard[part] for shard in shards) / count for part, title in PARTS.items()}


@helper
def missed_by_writes(results: Any) -> list[str]:
    """Return the targets of benchmarks/writes.py that were missed, with the figures."""
    searches, service, claims = results["stream"]["searches"], results["service"], results["claims"]
    slower = {
        "during commits": searches["beside"]["p99_ms"] / searches["quiet"]["p99_ms"],
        "during merges": searches["merging"]["p99_ms"] / searches["quiet"]["p99_ms"],
        "next to the service's writers": service["searches"]["beside"]["p99_ms"]
        / service["searches"]["quiet"]["p99_ms"],
    }
    longest, rate = results["stream"]["commit"]["longest_ms"], service["documents_per_s"]
    build, lone = claims["build_cpu_s"], claims["lone_per_cpu_s"]
    targets = [
        (longest <= 100, f"no commit longer than 100 ms ({longest:.0f})"),
        *(
            (
                factor <= 2,
                f"searches {when} at most twice as slow in the 99th percentile ({factor:.1f} times)",
            )
            for when, factor in slower.items()
        ),
        (
            rate >= 200,
            f"200 documents per second from {service['writers']} clients during searches ({rate:.0f})",
        ),
        (build <= 0.2, f"a BM25 build of 14,231 claims in 0.2 CPU-seconds ({build:.2f})"),
        (lone >= 10_000, f"10,000 single BM25 queries of them per CPU-second ({lone:,})"),
    ]
    return [text for reached, text in targets if not reached]


@helper
def distinct(rows: Iterable[Row], *names: str) -> list[tuple[Any, ...]]:
    """Return the different values of some fields, in the order in which they occur."""
    return list(dict.fromkeys(tuple(row[name] for name in names) for row in rows))


@helper
def one(rows: Iterable[Row], **values: Any) -> Row | None:
    """Return the last row that has all these values, or None."""
    found = [row for row in rows if all(row[name] == value for name, value in values.items())]
    return found[-1] if found else None


@helper
def over_seeds(rows: Iterable[Row], **values: Any) -> Row | None:
    """Return the means of the rows that have all these values, with the range of their S@1; None if there are none."""
    chosen = [row for row in rows if all(row[name] == value for name, value in values.items())]
    if not chosen:
        return None
    means = {}
    for name in ("mrr", "success_1", "ece", "sure_precision", "sure_share"):
        known = [row[name] for row in chosen if row[name] is not None]
        means[name] = fmean(known) if known else None
    first = [row["success_1"] for row in chosen]
    return {**means, "seeds": len(chosen), "range": (min(first), max(first))}


@helper
def without_pivots(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of `hard` by system; the pivot differs between languages: `pivot de, boost` is `pivot, boost`."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row["variant"] == "hard":
            found.setdefault(re.sub(r"^pivot \w+", "pivot", row["system"]), []).append(row)
    return found


@helper
def open_world(measure: str, rows: Sequence[Row]) -> str:
    """Return a measure's mean over seeds."""

    def mean(name: str) -> str:
        return short(fmean(row[name] for row in rows))

    if not rows:
        return "not measured"
    if measure in ("sure", "promised"):
        count = sum(row[measure] for row in rows)
        right = sum(row[measure] * row[f"{measure}_precision"] for row in rows if row[measure])
        return f"{short(right / count)} ({count:,})" if count else "– (0)"
    if measure == "ece":
        return f"{mean('ece')} ({mean('floor')})"
    if measure == "f1":
        expected = mean("chosen_f1") if all("chosen_f1" in row for row in rows) else "–"
        return f"{mean('f1')} / {expected} / {mean('best_f1')}"
    return mean("estimated_share")


@helper
def orphans(seeds: Iterable[Mapping[str, Row]], share: str, goal: float) -> str:
    """Return the cells of a share of texts without a document, over all seeds; `goal`: the largest error."""
    rows = [of[share] for of in seeds]
    error = [row["error"] for row in rows]
    sure = sum(row["sure"] for row in rows)
    right = f"{sum(row['precision'] * row['sure'] for row in rows) / sure:.3f}" if sure else ""
    ends = f" [{min(error):.3f}, {max(error):.3f}]" if min(error) < max(error) else ""
    absent, chance = (fmean(row[name] for row in rows) for name in ("orphans", "chance"))
    return f"{absent:.0%} | {fmean(error):.3f}{ends} | ≤ {goal} | {chance:.3f} | {sure:,} | {right} |"


@helper
def attacks(results: Any) -> Iterator[tuple[str, int, int]]:
    """Yield, per kind of attack, its name, the number of attempts and the number of failures."""
    kills, power, fuzz = (results[part].values() for part in ("kills", "power", "fuzz"))
    wrong = sum(row.get("wrong", 0) for row in kills)
    yield (
        "processes killed in the middle of a change",
        sum(r.get("killed_and_right", 0) for r in kills) + wrong,
        wrong,
    )
    states, wrong = (sum(row[key] for row in power) for key in ("states", "wrong"))
    yield "states that a power cut may leave", states, wrong
    altered = sum(results["corruptions"].values())
    yield (
        "files of an index altered, truncated or extended",
        altered,
        altered - results["corruptions"]["refused"],
    )
    for kind in ("index", "model"):
        outcomes = [
            (name, count)
            for folder, row in results["hostile"].items()
            if folder.startswith("model: ") is (kind == "model")
            for name, count in row.items()
        ]
        if outcomes:
            wrong = sum(count for name, count in outcomes if name not in ("refused", "answered", "same"))
            yield f"hostile {kind} folders with right checksums", sum(count for _, count in outcomes), wrong
    yield "mutated inputs", sum(row["cases"] for row in fuzz), sum(row["failures"] for row in fuzz)


# Per node: cores, bytes of page cache, bytes of disk, and the share of the disk that is used.
CORES, CACHE, DISK, FULL = 16, 32 * 2**30, 2e12, 0.75
# Copies of a shard, bytes in a shard, share of the CPU time used for searches, hours in a month.
COPIES, SHARD, BUSY, MONTH = 2, 50e9, 0.5, 730
# Dimension of a vector; bytes of its links in the graph's lowest layer, which has almost all links.
DIM, LINKS = 128, 2 * 32 * 4


@helper
def estimated(results: Any) -> dict[str, Any]:
    """Return what 10⁸ and 10¹⁰ documents take on servers, computed from the rates of one small node."""
    found, growth = results["cluster, HNSW"], _growth()
    size, built = found["build"]["bytes_per_document"], found["build"]
    ms = found["search"]["8"]["cpu_ms"] * (SHARD / size / results["sentences"]) ** growth
    assumed = (
        f"Assumed: nodes with {CORES} cores, {CACHE >> 30} GiB of page cache and {DISK / 1e12:g} TB of disk, filled to "
        f"{FULL:.0%}; {COPIES} copies of each shard, shards of {SHARD / 1e9:g} GB; {DIM} dimensions; {PRICE} per "
        f"CPU-hour; half of the CPU time for searches. Measured on {results['sentences']:,} documents: {size:,} bytes "
        f"and 1/{built['documents_per_cpu_s']:,} CPU-seconds per document, {found['search']['8']['cpu_ms']:g} CPU-ms "
        f"per query. A query's CPU time is taken to grow with the shard's documents to the power {growth:.2f}, as "
        f"BM25's does from 89,000 to 738,000 documents, to {ms:.0f} ms for each shard of {SHARD / size / 1e6:.0f} "
        "million:"
    )
    few, many = (_needs(documents, size, ms / 1000, built) for documents in (1e8, 1e10))
    return {"assumed": assumed, "rows": [(name, (few[name], many[name])) for name in few]}


def _growth() -> float:
    """Return the exponent with which the servers' CPU time per BM25 query grows in the number of documents."""
    small, large = (
        (r["documents"], r["rivals"]["elasticsearch"]["single_server_ms_a_query"])
        for r in recorded("elastic").values()
    )
    return math.log(large[1] / small[1]) / math.log(large[0] / small[0])


def _needs(documents: float, size: int, seconds: float, built: Any) -> dict[str, str]:
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


@helper
def all_pairs(row: Any) -> dict[str, Any]:
    """Return a row's figures over all pairs, with mRP only if it is the mean over the paper's eight ranks."""
    found: dict[str, Any] = row.get("tables", {})
    whole = sum(key.startswith("p@") for key in found) == len(RANKS)
    return found if whole else {key: value for key, value in found.items() if key != "mrp"}


@helper
def measured_with(name: str, row: Any) -> str:
    """Return a row's built-in configuration, and (in brackets) the training settings that differ from it."""
    if "settings" not in row:
        return ""
    changed = [
        f"{key.partition('.')[2]} {_setting(value)} ({_setting(own)})"
        for key, (value, own) in differences(name, row["settings"]).items()
        if not key.startswith("data.")
    ]
    return f"`{READY.get(name, name)}`" + (f": {', '.join(changed)}" if changed else "")


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


@helper
def shared_difference(results: Any) -> str:
    """Return a sentence on the word vectors of all trained models, which the built-in configurations do not use."""
    settings = [row["settings"] for rows in results.values() for row in rows.values() if "settings" in row]
    (vectors,) = {(s["data.word_vectors"], s["data.lsa_dim"]) for s in settings}
    return (
        f"All trained models use the word vectors {vectors[0]} with `lsa_dim = {vectors[1]}`, whereas the built-in "
        "configurations learn theirs from the corpus"
    )


@dataclass(frozen=True, slots=True)
class Law:
    """A cost of a · n^b for texts of n tokens, and R², the share of the log-cost's variance that it explains."""

    a: float
    b: float
    explained: float

    @classmethod
    def fit(cls, tokens: Sequence[float], costs: Sequence[float]) -> Law:
        """Fit by least squares on logarithms."""
        x, y = np.log(tokens), np.log(costs)
        b, log_a = np.polyfit(x, y, 1)
        rest = y - (log_a + b * x)
        return cls(float(np.exp(log_a)), float(b), float(1 - rest @ rest / ((y - y.mean()) @ (y - y.mean()))))

    def __str__(self) -> str:
        """Return the law with a for a thousand tokens, which is easier to interpret than for one token."""
        return f"{self.a * 1000**self.b:.3g} · (n / 1,000)^{self.b:.2f}"


@helper
def laws(rows: Sequence[Row]) -> dict[tuple[str, str], Law]:
    """Return the law of each model's CPU seconds and memory."""
    found = {}
    for model in dict.fromkeys(row["model"] for row in rows):
        runs = [row for row in rows if row["model"] == model]
        for key in ("cpu_s", "mib"):
            found[model, key] = Law.fit([row["tokens"] for row in runs], [row[key] for row in runs])
    return found
