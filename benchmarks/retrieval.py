"""Does retrieval work end to end? statements2articles: train, build, tune on dev, search and evaluate on test.

Records benchmarks/results/retrieval.json: BM25 alone, at its defaults and as chosen on dev (compared with other
libraries: benchmarks/bm25.py), and with a small encoder (bag of word vectors, InfoNCE) trained on the training links,
the dense retriever alone, the untuned hybrid, and what `index tune` chose on the dev split, with 95 % bootstrap
intervals.
"""

from pathlib import Path
from typing import Any

from benchmarks import bm25
from benchmarks.support import rank_data
from benchmarks.support.common import shared_data
from benchmarks.support.harness import Arguments, Results, benchmark
from indexes.text.parameters import Bm25Parameters
from linker.corpora import Query, read_queries
from linker.engine.building import BuildOptions, build
from linker.engine.engine import Engine
from linker.evaluation import evaluate, read_qrels, write_run
from linker.evaluation.evaluator import Resampling
from linker.training.run import run as train

MEASURES = ("recip_rank", "success_1", "success_5", "map")
DEPTH = 100


def score(
    engine: Engine,
    queries: list[Query],
    qrels: Any,
    folder: Path,
    mode: Any,
    parameters: Bm25Parameters | None = None,
) -> dict[str, Any]:
    """Search, write the run, evaluate it from the file."""
    answer = engine.search([q.text for q in queries], DEPTH, mode=mode, bm25=parameters)
    write_run(folder / "run", ((q.id, h.ids, h.scores) for q, h in zip(queries, answer.hits, strict=True)))
    result = evaluate(qrels, folder / "run", MEASURES, intervals=Resampling(1000, seed=0))
    return {name: [result[name], *result.intervals[name]] for name in MEASURES}


@benchmark(
    seed=0,
    work=None,
    model=(Path | None, "use this encoder instead of training one"),
    set=([], "override keys of the training file"),
)
def measured(options: Arguments) -> Results:
    data, folder, model = shared_data() / "statements2articles", options.work, options.model
    queries = {q.id: q for q in read_queries(data / "queries.jsonl.gz")}
    qrels = {split: read_qrels(data / "qrels" / f"{split}.tsv") for split in ("dev", "test")}
    texts = {split: [queries[q] for q in sorted(qrels[split])] for split in qrels}
    build([data / "corpus.jsonl.gz"], folder / "bm25", BuildOptions())
    text = Engine(folder / "bm25")
    rows = {"BM25": score(text, texts["test"], qrels["test"], folder, None)}
    index: Any = text.collection.hybrid.text
    choice = bm25.tuned_parameters("statements2articles", index)[0]["bm25"]
    rows["BM25, k1, b and k3 chosen on dev"] = score(
        text, texts["test"], qrels["test"], folder, None, Bm25Parameters.from_json(choice)
    )

    if model is None:
        model = folder / "model"
        train(rank_data.training("statements2articles", model, *options.set))
    build([data / "corpus.jsonl.gz"], folder / "hybrid", BuildOptions(encoder=str(model)))
    engine = Engine(folder / "hybrid")
    rows["trained bag of vectors alone"] = score(engine, texts["test"], qrels["test"], folder, "dense")
    rows["hybrid, untuned"] = score(engine, texts["test"], qrels["test"], folder, "hybrid")
    tuning = engine.tune(texts["dev"], qrels["dev"])
    chosen = tuning.chosen
    rows["hybrid, tuned on dev"] = score(engine, texts["test"], qrels["test"], folder, None)
    return {
        "data": "statements2articles test: 19,125 articles, 1,913 statements",
        "rows": rows,
        "bm25": choice,
        "tuned": {"mode": chosen.mode, "fusion": chosen.fusion.to_json() if chosen.fusion else None},
        "reason": tuning.reason,
    }
