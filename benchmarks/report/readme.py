"""Render tables of benchmarks/results into README.md and docs/: `python -m benchmarks.report.readme`.

Tables replace what is between `<!-- results: NAME ... -->` and `<!-- /results -->`, single values (values.py) what is
between `<!-- =NAME -->` and `<!-- /= -->`. A test checks that the pages are up to date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.report import (
    ast_pages,
    attention_tables,
    bm25_table,
    cluster_tables,
    cold_start_table,
    cost_tables,
    pair_tables,
    precision_tables,
    rank_tables,
    review_tables,
    serve_tables,
    stopping_tables,
    tables,
    ten_million_table,
    vector_tables,
)
from benchmarks.report.case_table import case_study
from benchmarks.report.image_table import image
from benchmarks.report.length_table import star_length
from benchmarks.report.open_world_table import open_world
from benchmarks.report.published_table import SYSTEMS, published, systems
from benchmarks.report.similarity_table import news_similarity
from benchmarks.report.values import render_values
from benchmarks.support.common import RESULTS, ROOT

PAGES = (
    ROOT / "README.md",
    *sorted(
        page for folder in (".", "concepts", "tutorials") for page in (ROOT / "docs" / folder).glob("*.md")
    ),
)
MARKED = re.compile(r"(<!-- results: ([\w. ]+) -->\n).*?(<!-- /results -->)", re.DOTALL)


def render(text: str) -> str:
    """Return a page with its results rendered."""

    def section(found: re.Match[str]) -> str:
        parts = [part for name in found[2].split() if (part := _part(name, TABLES[name]))]
        return found[1] + "\n".join(parts) + found[3]

    return render_values(MARKED.sub(section, text))


def _part(name: str, table: Callable[[Any], Iterator[str]]) -> str:
    path = RESULTS / f"{name.partition('.')[0]}.json"  # after a dot: another table of the same results
    if not path.exists():
        return ""
    content = json.loads(path.read_text(encoding="utf-8"))
    machine = content["machine"]
    source = (
        f"*{content['command']}*, {machine['cpu']}, {machine['cores']} cores, commit {content['commit'][:7]}"
    )
    return "\n".join([*table(content["results"]), "", f"<sub>{source}</sub>", "", ""])


def _retrieval(results: Any) -> Iterator[str]:
    yield f"**Retrieval**, {results['data']} (95 % bootstrap interval of MRR):"
    yield ""
    yield "| | MRR | Success@1 | Success@5 |"
    yield "|---|---|---|---|"
    for name, row in results["rows"].items():
        mrr, low, high = row["recip_rank"]
        yield f"| {name} | {mrr:.3f} ({low:.3f}–{high:.3f}) | {row['success_1'][0]:.3f} | {row['success_5'][0]:.3f} |"


def _search(results: Any) -> Iterator[str]:
    yield "**Search**, queries per CPU-second through the engine, k = 10 (× the CPU time of calling tantivy and FAISS):"
    yield ""
    yield "| | one at a time | 64 at once | 1,913 at once |"
    yield "|---|---|---|---|"
    for name in ("bm25, articles", "flat, sentences", "hnsw, sentences", "hybrid with flat, sentences"):
        cells = []
        for batch in ("1", "64", "all"):
            figures = results[name][f"batch={batch}, k=10"]
            cells.append(f"{figures['engine_queries_per_cpu_s']:,.0f} ({figures['ratio']:.2f} ×)")
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    yield (
        "19,125 articles of 780 words; sentences in 128 dimensions, 200,000 flat and 40,000 HNSW. bm25s, all at once: "
        f"{results['bm25s, articles, all queries at once, queries_per_cpu_s']['k=10']:,.0f} queries per CPU-second."
    )


def _build(results: Any) -> Iterator[str]:
    yield "**Build**, documents per CPU-second, reading, checking and storing the documents included:"
    yield ""
    yield "| | `linker index build` | the library alone, nothing stored beside its index |"
    yield "|---|---|---|"
    for name, figures in results.items():
        if "engine" in figures:
            library, direct = next(
                (k, v) for k, v in figures.items() if k not in ("documents", "engine", "Bm25Index")
            )
            engine = figures["engine"]
            yield (
                f"| {name} | {engine['documents_per_cpu_s']:,} ({engine['ratio']:.2f} ×) "
                f"| {direct['documents_per_cpu_s']:,} ({library}) |"
            )
    peer = results["bm25s, articles"]["bm25s"]
    yield f"| bm25, articles | | {peer['documents_per_cpu_s']:,} (bm25s) |"


def _evaluate(results: Any) -> Iterator[str]:
    yield "**Evaluation**, CPU seconds, reading the run from its file included:"
    yield ""
    yield "| queries × documents | linker | pytrec_eval | ranx (compiled before) |"
    yield "|---|---|---|---|"
    for name, figures in results.items():
        if "linker" in figures:
            cells = [
                f"{figures[tool]['cpu_s']:.2f} s, {figures[tool]['growth_mib']:,.0f} MiB"
                for tool in ("linker", "pytrec_eval", "ranx")
            ]
            yield f"| {name.replace('x', ' × ')} | {' | '.join(cells)} |"


TABLES: dict[str, Callable[[Any], Iterator[str]]] = {
    "retrieval": _retrieval,
    "search": _search,
    "index_build": _build,
    "evaluate": _evaluate,
    "news_similarity": news_similarity,
    "published": published,
    **dict.fromkeys((*SYSTEMS, "same_event", "news_pipelines"), systems),
    "image": image,
    "star_length": star_length,
    "case_study": case_study,
    "open_world": open_world,
    **ast_pages.TABLES,
    **attention_tables.TABLES,
    **bm25_table.TABLES,
    **cluster_tables.TABLES,
    **cold_start_table.TABLES,
    **cost_tables.TABLES,
    **pair_tables.TABLES,
    **precision_tables.TABLES,
    **rank_tables.TABLES,
    **review_tables.TABLES,
    **serve_tables.TABLES,
    **stopping_tables.TABLES,
    **tables.TABLES,
    **ten_million_table.TABLES,
    **vector_tables.TABLES,
}


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(render(page.read_text(encoding="utf-8")), encoding="utf-8")
