"""Single measured values for prose: `<!-- =NAME -->0.76<!-- /= -->` in a page shows `VALUES[NAME]`, rendered.

The comments are invisible in the rendered page. Each value names its results file and is computed from it alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from benchmarks.support.common import recorded

INLINE = re.compile(r"(<!-- =([\w.-]+) -->).*?(<!-- /= -->)", re.DOTALL)

_results = cache(recorded)


def render_values(text: str) -> str:
    """Return a page with its inline values rendered; raises KeyError for a name that does not exist."""
    return INLINE.sub(lambda found: found[1] + value(found[2]) + found[3], text)


def value(name: str) -> str:
    """Return a value as it is printed."""
    source, compute = VALUES[name]
    return compute(_results(source))


def _speed(rival: str, documents: str = "89000") -> Callable[[Any], str]:
    """BM25's queries per CPU-second in one batch."""
    return lambda r: f"{r[documents]['rivals'][rival]['batch_queries_per_cpu_s']:,.0f}"


def _encoded(model: str, tokens: int, beside: str) -> Callable[[Any], str]:
    """The ratio of documents per CPU-second between two ways to encode."""
    return lambda r: f"{r[model][f'{tokens} tokens'] / r[beside][f'{tokens} tokens']:.2f}"


def _lead(data: str, split: str) -> Callable[[Any], str]:
    """The lead in MRR of the untrained star over the mean of its word vectors."""
    return lambda r: f"{r[data]['star'][split]['mrr'] - r[data]['mean'][split]['mrr']:.3f}"


def _build(name: str) -> Callable[[Any], str]:
    return lambda r: f"{r[name]['engine']['documents_per_cpu_s']:,}"


def _hours(name: str) -> Callable[[Any], str]:
    """Hours for 100 million documents at a writer's rate."""
    return lambda r: f"{1e8 / r[name]['engine']['documents_per_cpu_s'] / 3600:.1f}"


def _at_recall(kind: str, recall: str) -> Callable[[Any], str]:
    return lambda r: f"{r[f'{kind}, 1,000,000 real']['at_recall'][recall]['ms']:.1f}"


def _watched(search: str) -> Callable[[Any], str]:
    """Posts per CPU-second when matched against the largest number of seeds."""
    return lambda r: f"{[row for row in r['rows'] if row['search'] == search][-1]['posts_per_cpu_s']:,}"


def _linked(system: str) -> Callable[[Any], str]:
    """MRR of German pages linked to French ones: directly, through English, or by both."""
    return lambda r: (
        f"{next(row['mrr'] for row in r['rows'] if (row['system'], row['pair']) == (system, 'de-fr')):.3f}"
    )


RECOMMENDED = "star, preset recommended"
VALUES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "bm25.speed": ("elastic", _speed("ours")),
    "bm25.speed-of-elasticsearch": ("elastic", _speed("elasticsearch")),
    "encode.bfloat16": ("encode", _encoded(f"{RECOMMENDED}, bfloat16", 256, RECOMMENDED)),
    "encode.compiled-256": ("encode", _encoded(f"{RECOMMENDED}, compiled", 256, RECOMMENDED)),
    "encode.compiled-1024": ("encode", _encoded(f"{RECOMMENDED}, compiled", 1024, RECOMMENDED)),
    "encode.both": ("encode", _encoded(f"{RECOMMENDED}, compiled, bfloat16", 256, RECOMMENDED)),
    "encode.times-minilm": ("encode", lambda r: f"{r[RECOMMENDED]['times MiniLM at 256 tokens']:.0f}"),
    "star.lead-statements": ("attention", _lead("statements2articles", "test")),
    "star.lead-tweets": ("attention", _lead("tweets2claims", "test")),
    "build.articles": ("index_build", _build("bm25, articles")),
    "build.articles-hours": ("index_build", _hours("bm25, articles")),
    "build.sentences": ("index_build", _build("hybrid with flat, sentences")),
    "build.sentences-hours": ("index_build", _hours("hybrid with flat, sentences")),
    "ann.hnsw-95": ("ann", _at_recall("hnsw", "0.95")),
    "ann.pq-95": ("ann", _at_recall("pq", "0.95")),
    "ann.hnsw-99": ("ann", _at_recall("hnsw", "0.99")),
    "ann.pq-99": ("ann", _at_recall("pq", "0.99")),
    "faults.flat-in-use": (
        "faults", lambda r: f"{r['memory']['flat']['query']['in_use_mib']['rss']:,.0f}",
    ),
    "faults.flat-peak": ("faults", lambda r: f"{r['memory']['flat']['query']['peak_rss_mib']:,.0f}"),
    "triangles.direct": ("triangles", _linked("direct")),
    "triangles.through": ("triangles", _linked("through")),
    "triangles.both": ("triangles", _linked("both")),
    "watch.bm25": ("watch", _watched("BM25")),
    "watch.hybrid": ("watch", _watched("hybrid, word vectors")),
    "watch.rate": ("watch", lambda r: f"{r['offered_per_s']:,}"),
}  # fmt: skip
