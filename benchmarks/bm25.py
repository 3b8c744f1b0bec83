"""How well does BM25 rank with different parameters and analyses, compared with others, on all link sets?

`python -m benchmarks.bm25 [--elastic URL]` → benchmarks/results/bm25.json: MRR by k3 on every split; linker at its
defaults and as chosen on dev (analysis, k1, b, k3); bm25s with the best of its own tokenizers, chosen on dev; tantivy;
Elasticsearch with its `english` analyzer, if a server is named. Sets without a dev split are ranked at the defaults.
"""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.support import text_rivals
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.links import NAMES, interval, link_set, measures, reciprocal_ranks
from indexes.dtypes import Float64Array, Int64Array
from indexes.text.bm25 import Bm25Index
from indexes.text.parameters import TOKENIZERS, AnalysisSettings, Bm25Parameters

K3 = (0.0, 0.5, 1.0, 2.0, 8.0, math.inf)
ANALYSES = tuple(
    AnalysisSettings(tokenizer=tokenizer, stop_words=stop_words, min_token=min_token)
    for tokenizer, stop_words, min_token in itertools.product(TOKENIZERS, (False, True), (1, 2))
)
GRID = tuple(
    Bm25Parameters(k1, b, k3)
    for k1, b, k3 in itertools.product((0.9, 1.2, 1.6, 2.0, 2.5, 3.0), (0.6, 0.75, 0.85), (0.0, 1.0, 8.0))
)
Search = Callable[[Sequence[str]], Int64Array]


def index_of(name: str, analysis: AnalysisSettings) -> Bm25Index:
    index, documents = Bm25Index(analysis), link_set(name).documents
    index.add([str(row) for row in range(len(documents))], documents)
    index.commit()
    return index


def mrr(search: Search, name: str, split: str) -> float:
    queries, relevant = link_set(name).splits[split]
    return float(reciprocal_ranks(search(queries), relevant).mean())


def by(index: Bm25Index, parameters: Bm25Parameters | None = None) -> Search:
    return lambda queries: index.search_rows(queries, text_rivals.K, bm25=parameters)[0]


def k3_table(name: str, index: Bm25Index) -> dict[str, Any]:
    """Return MRR by split and k3."""
    return {
        split: {f"{k3:g}": round(mrr(by(index, Bm25Parameters(k3=k3)), name, split), 4) for k3 in K3}
        for split in link_set(name).splits
    }


def measured(search: Search, name: str) -> dict[str, Any]:
    """Return MRR on test with its 95 % bootstrap interval, and Success@1 and @5."""
    queries, relevant = link_set(name).splits["test"]
    values: Float64Array = reciprocal_ranks(search(queries), relevant)
    return measures(values) | {"interval": interval(values)}


def tuned(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the analysis, then the parameters chosen on dev, and their gain on test."""
    analysis = max(ANALYSES, key=lambda a: mrr(by(index_of(name, a)), name, "dev"))
    index = index_of(name, analysis)
    choice, row = tuned_parameters(name, index)
    return {"analysis": analysis.to_json(), **choice}, row


def tuned_parameters(name: str, index: Bm25Index) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return k1, b and k3 chosen on dev for an existing index, and their gain on test."""
    on_dev = {p: mrr(by(index, p), name, "dev") for p in GRID}
    parameters = max(GRID, key=on_dev.__getitem__)
    return {"dev_mrr": round(on_dev[parameters], 4), "bm25": parameters.to_json()}, measured(
        by(index, parameters), name
    )


def best_bm25s(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return bm25s's best tokenizer on dev (stems and stop words without a dev split), and its row."""
    documents, variants = link_set(name).documents, {}
    for stems, stop_words in itertools.product((True, False), (True, False)):
        variants[stems, stop_words] = text_rivals.Bm25s(documents, stems=stems, stop_words=stop_words)
    if "dev" in link_set(name).splits:
        chosen = max(variants, key=lambda key: mrr(variants[key].search, name, "dev"))
    else:
        chosen = (True, True)
    return {"stems": chosen[0], "stop_words": chosen[1]}, measured(variants[chosen].search, name)


def measure(name: str, elastic: str | None) -> dict[str, Any]:
    index = index_of(name, AnalysisSettings())
    rows: dict[str, Any] = {"linker": measured(by(index), name)}
    choices: dict[str, Any] = {}
    if "dev" in link_set(name).splits:
        choices["parameters"], rows["linker, k1, b and k3 chosen on dev"] = tuned_parameters(name, index)
        choices["all"], rows["linker, analysis too"] = tuned(name)
    choices["bm25s"], rows["bm25s, its best tokenizer"] = best_bm25s(name)
    documents = link_set(name).documents
    rows["tantivy"] = measured(text_rivals.Tantivy(documents).search, name)
    if elastic:
        rows["Elasticsearch, english"] = measured(text_rivals.Elasticsearch(documents, elastic).search, name)
    return {"documents": len(documents), "k3": k3_table(name, index), "rows": rows, "choices": choices}


@benchmark(
    seed=0,
    elastic=(str | None, "also measure Elasticsearch at this address"),
    only=([], "print these sets' figures instead of recording all"),
)
def measured_sets(options: Arguments) -> Results | None:
    """Measure each link set; nothing is recorded of a part of them."""
    results = {}
    for name in options.only or NAMES:
        results[name] = measure(name, options.elastic)
        print(name, json.dumps(results[name]), flush=True)
    return None if options.only else results
