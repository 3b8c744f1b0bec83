"""The tables of reviewing: reads beside BM25 and ASReview, and the times of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

RATIOS = ("reads to 10, ratio", "reads to 0.8, ratio", "reads to 0.9, ratio", "reads to 0.95, ratio")
STEPS = {
    "upload_s": "upload, s",
    "index_s": "index, s",
    "first_document_s": "first document, s",
    "next_ms_p50": "next document, ms (median)",
    "next_ms_p95": "next document, ms (95 %)",
    "search_s": "search, s",
    "export_s": "export, s",
}


JOBS = {
    "story": "one story: 10,000 posts, 2,000 articles",
    "rows": "a match for each of 209 posts among 14,231 claims",
}


def reads(results: Any) -> Iterator[str]:
    """Reads per relevant document at a recall of .95, and reads as a multiple of ASReview's."""
    yield "| | reads per relevant document at a recall of .95 [95 %] | topics | CPU ms per judgement |"
    yield "|---|---|---|---|"
    for name in ("feedback", "BM25 by headlines"):
        row = results[name]
        cost = row.get("cpu_ms per judgement")
        figures = row["reads per relevant document at .95"]
        yield f"| {name} | {_interval(figures)} | {figures['topics']} | {'' if cost is None else f'{cost:.1f}'} |"
    beside = results["ASReview"]["feedback beside it"]
    yield ""
    yield f"| beside ASReview {results['ASReview']['version']}: times its reads [95 %] | | topics |"
    yield "|---|---|---|"
    for key in RATIOS:
        if key in beside:
            yield f"| {key.removesuffix(', ratio')} | {_interval(beside[key])} | {beside[key]['topics']} |"


def page(results: Any) -> Iterator[str]:
    """How long a reviewer waits for the page."""
    posts, news = results["statements_xlsx"], results["news"]
    yield f"| | {posts['posts']:,} posts, {posts['articles']:,} articles (XLSX) | {news['documents']:,} news |"
    yield "|---|---|---|"
    for key, name in STEPS.items():
        yield f"| {name} | {posts[key]:g} | {news[key]:g} |"
    if "first_verdict" in results:
        yield ""
        yield "| from the first file to the first verdict | seconds | clicks | words of the page |"
        yield "|---|---|---|---|"
        for job, name in JOBS.items():
            row = results["first_verdict"][job]
            yield f"| {name} | {row['seconds']:g} | {row['clicks']} | {row['words']} |"


def _interval(row: Any) -> str:
    return f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {"review": reads, "page": page}
