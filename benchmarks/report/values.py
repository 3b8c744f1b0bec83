"""Single measured values for prose: `<!-- =NAME -->0.76<!-- /= -->` in a page shows `VALUES[NAME]`, rendered.

The comments are invisible in the rendered page. Each value is an expression, as in the tables, of the results `r` of
one file.
"""

import re
from functools import cache

from benchmarks.report.cells import ENVIRONMENT
from benchmarks.support.common import recorded

INLINE = re.compile(r"(<!-- =([\w.-]+) -->).*?(<!-- /= -->)", re.DOTALL)

_results = cache(recorded)


def render_values(text: str) -> str:
    """Return a page with its inline values rendered; raises KeyError for a name that does not exist."""
    return INLINE.sub(lambda found: found[1] + value(found[2]) + found[3], text)


def value(name: str) -> str:
    """Return a value as it is printed."""
    source, expression = VALUES[name]
    return ENVIRONMENT.from_string(f"{{{{ {expression} }}}}").render(r=_results(source))


STAR = "star, preset recommended"
# How many times as fast one way to encode is as another.
FASTER = "(r['{0}']['{1} tokens'] / r['{2}']['{1} tokens'])|f('.2f')"
# How far the untrained star is ahead of the mean of its word vectors, in MRR.
LEAD = "(r.{0}.star.test.mrr - r.{0}.mean.test.mrr)|f"
BUILT = "r['{}'].engine.documents_per_cpu_s|f(',')"
HOURS = "(1e8 / r['{}'].engine.documents_per_cpu_s / 3600)|f('.1f')"  # for 100 million documents
AT_RECALL = "r['{}, 1,000,000 real'].at_recall['{}'].ms|f('.1f')"
# Posts per CPU-second with the largest number of seeds, which is the last row.
WATCHED = "(r.rows|one(search='{}')).posts_per_cpu_s|f(',')"
TUNED = "(r.rows|one(data='many with vectors')).{}"
VALUES = {
    "bm25.speed": ("elastic", "r['89000'].rivals.ours.batch_queries_per_cpu_s|f(',.0f')"),
    "bm25.speed-of-elasticsearch": ("elastic", "r['89000'].rivals.elasticsearch.batch_queries_per_cpu_s|f(',.0f')"),
    "encode.bfloat16": ("encode", FASTER.format(f"{STAR}, bfloat16", 256, STAR)),
    "encode.compiled-256": ("encode", FASTER.format(f"{STAR}, compiled", 256, STAR)),
    "encode.compiled-1024": ("encode", FASTER.format(f"{STAR}, compiled", 1024, STAR)),
    "encode.both": ("encode", FASTER.format(f"{STAR}, compiled, bfloat16", 256, STAR)),
    "encode.times-minilm": ("encode", f"r['{STAR}']['times MiniLM at 256 tokens']|f('.0f')"),
    "star.lead-statements": ("attention", LEAD.format("statements2articles")),
    "star.lead-tweets": ("attention", LEAD.format("tweets2claims")),
    "build.articles": ("index_build", BUILT.format("bm25, articles")),
    "build.articles-hours": ("index_build", HOURS.format("bm25, articles")),
    "build.sentences": ("index_build", BUILT.format("hybrid with flat, sentences")),
    "build.sentences-hours": ("index_build", HOURS.format("hybrid with flat, sentences")),
    "ann.hnsw-95": ("ann", AT_RECALL.format("hnsw", "0.95")),
    "ann.pq-95": ("ann", AT_RECALL.format("pq", "0.95")),
    "ann.hnsw-99": ("ann", AT_RECALL.format("hnsw", "0.99")),
    "ann.pq-99": ("ann", AT_RECALL.format("pq", "0.99")),
    "groups.recall": ("groups", "r.promise.recall.held|f('.3f')"),
    "groups.recall-width": ("groups", "r.promise.recall.width|f('.2f')"),
    "cluster.recall": ("cluster_ranking", TUNED.format("chosen.recall|f('.3f')")),
    "cluster.recall-ms": ("cluster_ranking", TUNED.format("chosen.ms|f('.0f')")),
    "cluster.exact-ms": ("cluster_ranking", TUNED.format("exact_ms|f('.0f')")),
    "joint.cost-minutes": ("joint", "r.cost.cpu_minutes|f('.1f')"),
    "joint.cost-gib": ("joint", "r.cost.gib|f('.1f')"),
    "faults.flat-in-use": ("faults", "r.memory.flat.query.in_use_mib.rss|f(',.0f')"),
    "faults.flat-peak": ("faults", "r.memory.flat.query.peak_rss_mib|f(',.0f')"),
    "watch.bm25": ("watch", WATCHED.format("BM25")),
    "watch.hybrid": ("watch", WATCHED.format("hybrid, word vectors")),
    "watch.rate": ("watch", "r.offered_per_s|f(',')"),
}  # fmt: skip
