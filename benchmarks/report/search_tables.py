"""Tables for the pages: retrieval, its speed, building and evaluating, BM25, vectors and tuning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.report.cells import renders


@renders("bm25")
def bm25(results: Any) -> Iterator[str]:
    """One row per system: MRR on the test split of each set, with its interval."""
    sets = list(results)
    yield f"| MRR on test | {' | '.join(sets)} |"
    names = dict.fromkeys(name for found in results.values() for name in found["rows"])
    for name in names:
        cells = [_mrr(found["rows"].get(name)) for found in results.values()]
        yield f"| {name} | {' | '.join(cells)} |"
    for name, found in results.items():
        if "all" in found["choices"]:
            yield f"Chosen on dev of {name}: {_choice(found['choices'])}."


def _mrr(row: Any) -> str:
    return f"{row['mrr']:.3f} ({row['interval'][0]:.3f}–{row['interval'][1]:.3f})" if row else "–"


def _choice(choices: Any) -> str:
    analysis = choices["all"]["analysis"]
    parts = [f"`--tokenizer {analysis['tokenizer']}`", f"`--min-token {analysis['min_token']}`"]
    parts += ["`--stop-words`"] if analysis["stop_words"] else []
    alone, both = (_parameters(choices[key]["bm25"]) for key in ("parameters", "all"))
    return f"{alone}; with the analysis {', '.join(parts)}: {both}"


def _parameters(values: Any) -> str:
    k3 = "inf" if values["k3"] is None else f"{values['k3']:g}"
    return f"k1 {values['k1']:g}, b {values['b']:g}, k3 {k3}"


@renders("bm25.k3")
def k3(results: Any) -> Iterator[str]:
    """One row per split of a set, one column per k3."""
    first = next(iter(results.values()))["k3"]
    columns = list(next(iter(first.values())))
    yield f"| MRR by k3 | {' | '.join(columns)} |"
    for name, found in results.items():
        for split, values in found["k3"].items():
            yield f"| {name}, {split} | {' | '.join(f'{values[k3]:.4f}' for k3 in columns)} |"


@renders("fields")
def fields(results: Any) -> Iterator[str]:
    """One row per ranking: MRR on dev and test, the paired difference on test from the first row, and speed."""
    yield "| MRR, tweets2claims | dev | test | difference on test | queries per CPU-second |"
    for number, (name, row) in enumerate(results["rows"].items()):
        low, high = row["gain_interval"]
        gain = f"{row['gain']:+.3f} ({low:+.3f} to {high:+.3f})" if number else "–"
        yield f"| {name} | {row['dev_mrr']:.3f} | {_mrr(row)} | {gain} | {row['queries_per_second']:,} |"
    weights = ", ".join(f"{weight}: {mrr:.3f}" for weight, mrr in results["dev_mrr_by_weight"].items())
    yield f"MRR on dev by the weight of the title, that of the text being 1: {weights}."


COMPARED = "batch="


@renders("flat")
def flat(results: Any) -> Iterator[str]:
    yield (
        f"**Exact search** of {results['rows']:,} × {results['dim']} on one core, CPU ms per batch: certified / "
        "tuned FAISS (times as fast). Real passages, and random vectors:"
    )
    yield "| batch | k | passages | random |"
    for name in (n for n in results["real"] if n.startswith(COMPARED)):
        batch, k = (part.partition("=")[2] for part in name.split(", "))
        cells = [_against(results[case][name]) for case in ("real", "random") if case in results]
        yield f"| {batch} | {k} | {' | '.join(cells)} |"
    pairs = {n: c for n, c in results.items() if n.startswith("all pairs")}
    for name, cost in pairs.items():
        yield ""
        yield f"A{name[1:]}: {cost['cpu_s']:,.1f} CPU s, at most {cost['peak_mib']:,.0f} MiB."
    yield ""
    yield "Other libraries, CPU ms for 1 and for 64 queries (k = 5, scaled up from 100,000 rows):"
    yield "| | 1 | 64 |"
    for name, cost in results["libraries, ms for all rows"].items():
        if isinstance(cost, dict):
            yield f"| {name} | {cost['batch=1']:,.0f} | {cost['batch=64']:,.0f} |"


def _against(figures: Any) -> str:
    return f"{figures['certified_ms']:,.0f} / {figures['faiss_ms']:,.0f} ({figures['times_as_fast']:.1f} ×)"


# These rows have not been measured again since cells began to hold codes that are compared in registers.
OLD_CELLS = "ivfpq", "ivfpq (old cells)"


@renders("ann")
def ann(results: Any) -> Iterator[str]:
    yield (
        "**Approximate search**, top ten, one core: CPU ms of a single query at the cheapest setting that reaches "
        "a recall (the recall reached in brackets), and the CPU time of the build:"
    )
    yield "| | build, CPU s | recall .9 | .95 | .99 | exact, by the same index |"
    for name, row in results.items():
        if name == "sizes":
            continue
        cells = [_at(row["at_recall"].get(target)) for target in ("0.9", "0.95", "0.99")]
        exact = f"{row['exact_ms']:.2f}" if "exact_ms" in row else ""
        yield f"| {name.replace(*OLD_CELLS)} | {row['build_cpu_s']:,.1f} | {' | '.join(cells)} | {exact} |"
    if "sizes" in results:
        sizes = ", ".join(
            f"{name.replace(*OLD_CELLS)} {size:,.0f}" for name, size in results["sizes"].items()
        )
        yield f"Bytes per row in addition to the vectors' 1,024: {sizes}."


def _at(point: Any) -> str:
    return f"{point['ms']:.2f} ({point['recall']:.3f})" if point else "not reached"


COMMANDS = {
    "dense_torch_s": "`linker search --mode dense`, PyTorch",
    "dense_onnx_s": "`linker search --mode dense`, ONNX Runtime",
    "hybrid_onnx_s": "`linker search --mode hybrid`, ONNX Runtime",
    "bm25_s": "`linker search --mode bm25`",
    "doctor_s": "`linker doctor`",
    "help_s": "`linker --help`",
    "export_s": "`linker export` of the index",
}


@renders("cold_start.processes")
def cold_start(results: Any) -> Iterator[str]:
    """CPU seconds of whole processes."""
    yield "| command, in a new process | CPU s |"
    for key, command in COMMANDS.items():
        yield f"| {command} | {results[key]:.2f} |"


@renders("cold_start.runtimes")
def runtimes(results: Any) -> Iterator[str]:
    """How close the vectors of the two runtimes are, and what each runtime costs once loaded."""
    lone, batch = results["query_ms"], results["batch_of_64_ms"]
    yield "| | PyTorch | ONNX Runtime |"
    yield f"| one query, CPU ms | {lone['torch']:.2f} | {lone['onnx']:.2f} |"
    yield f"| 64 queries, CPU ms | {batch['torch']:.1f} | {batch['onnx']:.1f} |"
    yield f"| least cosine over {results['texts']:,} articles | | {results['least_cosine']:.7f} |"
    yield f"| size of `model.onnx` | | {results['graph_kib']:,} KiB |"


@renders("retrieval")
def retrieval(results: Any) -> Iterator[str]:
    yield f"**Retrieval**, {results['data']} (95 % bootstrap interval of MRR):"
    yield "| | MRR | Success@1 | Success@5 |"
    for name, row in results["rows"].items():
        mrr, low, high = row["recip_rank"]
        yield f"| {name} | {mrr:.3f} ({low:.3f}–{high:.3f}) | {row['success_1'][0]:.3f} | {row['success_5'][0]:.3f} |"


@renders("search")
def search(results: Any) -> Iterator[str]:
    yield "**Search**, queries per CPU-second through the engine, k = 10 (× the CPU time of calling tantivy and FAISS):"
    yield "| | one at a time | 64 at once | 1,913 at once |"
    for name in ("bm25, articles", "flat, sentences", "hnsw, sentences", "hybrid with flat, sentences"):
        cells = []
        for batch in ("1", "64", "all"):
            figures = results[name][f"batch={batch}, k=10"]
            cells.append(f"{figures['engine_queries_per_cpu_s']:,.0f} ({figures['ratio']:.2f} ×)")
        yield f"| {name} | {' | '.join(cells)} |"
    yield (
        "19,125 articles of 780 words; sentences in 128 dimensions, 200,000 flat and 40,000 HNSW. bm25s, all at once: "
        f"{results['bm25s, articles, all queries at once, queries_per_cpu_s']['k=10']:,.0f} queries per CPU-second."
    )


@renders("index_build")
def index_build(results: Any) -> Iterator[str]:
    yield "**Build**, documents per CPU-second, including reading, checking and storing the documents:"
    yield "| | `linker index build` | the library alone, nothing stored next to its index |"
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


@renders("evaluate")
def evaluate(results: Any) -> Iterator[str]:
    yield "**Evaluation**, CPU seconds, including reading the run from its file:"
    yield "| queries × documents | linker | pytrec_eval | ranx (already compiled) |"
    for name, figures in results.items():
        if "linker" in figures:
            cells = [
                f"{figures[tool]['cpu_s']:.2f} s, {figures[tool]['growth_mib']:,.0f} MiB"
                for tool in ("linker", "pytrec_eval", "ranx")
            ]
            yield f"| {name.replace('x', ' × ')} | {' | '.join(cells)} |"


@renders("elastic")
def bm25_speed(results: Any) -> Iterator[str]:
    """BM25 next to its rivals: queries and documents per CPU-second."""
    yield (
        "**BM25 compared with its peers** on the same sentences, queries and terms, k = 10. Rates are per CPU-second "
        "(of server and client for Elasticsearch); the last column is the overlap of the top ten with linker's:"
    )
    yield "| sentences | | queries at once | one by one | documents indexed | overlap |"
    for part in results.values():
        for name, row in part["rivals"].items():
            speeds = [row[f"{kind}_queries_per_cpu_s"] for kind in ("batch", "single")]
            cells = [f"{value:,.0f}" for value in (*speeds, row["documents_per_cpu_s"])]
            who = {"ours": "**linker**"}.get(name, name)
            yield f"| {part['documents']:,} | {who} | {' | '.join(cells)} | {row['same_ten_as_ours']:.3f} |"


@renders("tuning")
def tuning(results: Any) -> Iterator[str]:
    """Gain over the untuned index on unseen queries, by the number of judged queries."""
    yield (
        "**Gain in MRR over the untuned index on queries not used for tuning**, mean (worst) of "
        f"{results['draws']} random draws of n judged queries. The rule before kept a single retriever unless the best "
        "hybrid led it by two standard errors; the best of all is chosen without any such threshold:"
    )
    sizes = list(next(iter(results["pairs"].values()))["gains"])
    yield f"| | rule | {' | '.join(f'n = {size}' for size in sizes)} |"
    for name, pair in results["pairs"].items():
        for rule in pair["gains"][sizes[0]]:
            cells = [f"{g[rule]['mean']:+.4f} ({g[rule]['worst']:+.3f})" for g in pair["gains"].values()]
            yield f"| {name} ({pair['default_mrr']:.3f}) | {rule} | {' | '.join(cells)} |"


@renders("prepare")
def prepare(results: Any) -> Iterator[str]:
    """Reading dumps: rates of the steps, and whole preparations with their memory."""
    yield "| step | how many | characters each | per CPU-second |"
    for r in results["rows"]:
        characters = f"{r['characters_each']:,}" if "characters_each" in r else ""
        yield f"| {r['what']} | {r['count']:,} | {characters} | {r['per_cpu_s']:,} |"
    for r in results["runs"]:
        yield (
            f"| whole preparation, {r['parsed']:,} pages parsed, peak {r['peak_mib']:,.0f} MiB | {r['pages']:,} pages "
            f"| | {r['per_cpu_s']:,} |"
        )
