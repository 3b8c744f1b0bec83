"""Do fields pay off? Tweets → claims with titles: BM25 over title and text joined, and BM25F with weights from dev.

`python -m benchmarks.fields` → benchmarks/results/fields.json: MRR on dev and test with 95 % bootstrap intervals, the
paired difference from the joined text at the defaults, dev MRR by the title's weight, and queries per CPU-second.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from benchmarks.support.common import cpu_time
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.links import LinkSet, interval, link_set, reciprocal_ranks
from benchmarks.support.rank_data import documents_for
from indexes.dtypes import Float64Array
from indexes.text.bm25 import Bm25Index
from indexes.text.fields import FieldsIndex
from indexes.text.parameters import AnalysisSettings, Bm25Parameters, Field

NAME, K = "tweets2claims", 100
WEIGHTS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
K1, B = (0.9, 1.2, 1.6, 2.0, 2.5), (0.3, 0.6, 0.75, 0.85)
DEFAULT = Bm25Parameters()
PLAIN = [Bm25Parameters(k1, b) for k1, b in itertools.product(K1, B)]


def parameters(weight: float, title_b: float = 0.75, text_b: float = 0.75, k1: float = 1.2) -> Bm25Parameters:
    return Bm25Parameters(k1, fields=(Field("title", weight, title_b), Field("text", 1.0, text_b)))


class Ranking:
    """One of the two indexes, with its reciprocal ranks on a split."""

    def __init__(self, index: Bm25Index | FieldsIndex, links: LinkSet) -> None:
        self.index, self._links = index, links

    def values(self, split: str, p: Bm25Parameters) -> Float64Array:
        queries, relevant = self._links.splits[split]
        return reciprocal_ranks(self.index.search_rows(queries, K, bm25=p)[0], relevant)

    def mrr(self, p: Bm25Parameters) -> float:
        return round(float(self.values("dev", p).mean()), 4)

    def best(self, candidates: Sequence[Bm25Parameters]) -> Bm25Parameters:
        return max(candidates, key=self.mrr)

    def speed(self, p: Bm25Parameters) -> float:
        """Return queries per CPU-second, the best of five rounds on train."""
        queries = self._links.splits["train"][0]
        return round(len(queries) / cpu_time(lambda: self.index.search_rows(queries, K, bm25=p), 6))


def row(ranking: Ranking, p: Bm25Parameters, base: Float64Array) -> dict[str, Any]:
    values = ranking.values("test", p)
    return {
        "dev_mrr": ranking.mrr(p),
        "mrr": round(float(values.mean()), 4),
        "interval": interval(values),
        "gain": round(float((values - base).mean()), 4),
        "gain_interval": interval(values - base),
        "queries_per_second": ranking.speed(p),
        "bm25": p.to_json(),
    }


@benchmark(seed=0)
def measured(_: Arguments) -> Results:
    corpus, links = documents_for(NAME), link_set(NAME)
    whole, divided = Bm25Index(), FieldsIndex.empty(AnalysisSettings(), parameters(1.0))
    whole.add([d.id for d in corpus], [d.full_text for d in corpus])
    divided.add(corpus)
    plain, fields = Ranking(whole, links), Ranking(divided, links)
    base = plain.values("test", DEFAULT)
    by_weight = [parameters(weight) for weight in WEIGHTS]
    everything = [parameters(*values) for values in itertools.product(WEIGHTS, B, B, K1)]
    rows = {
        "one text, the defaults": (plain, DEFAULT),
        "one text, k1 and b chosen": (plain, plain.best(PLAIN)),
        "two fields of weight 1": (fields, parameters(1.0)),
        "two fields, the title's weight chosen": (fields, fields.best(by_weight)),
        "two fields, weight, k1 and both b chosen": (fields, fields.best(everything)),
    }
    return {
        "rows": {name: row(ranking, p, base) for name, (ranking, p) in rows.items()},
        "dev_mrr_by_weight": {f"{w:g}": fields.mrr(p) for w, p in zip(WEIGHTS, by_weight, strict=True)},
    }
