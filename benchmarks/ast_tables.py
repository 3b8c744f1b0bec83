"""The AST's two tables on real data, and retrieval over the whole corpus: AST, CNN, GRUs, mean, MiniLM, BM25, hybrids.

`python -m benchmarks.ast_tables --work FOLDER` trains the models that FOLDER lacks and records
benchmarks/results/ast_tables.json. Every encoder starts from the same vectors (word-vectors-en and latent semantic
vectors of the corpus, first trained as a mean encoder), with the same vocabulary and tokens. All choices are made on
dev; the reported figures are on test. A trial is one (data, model, seed) and a file in FOLDER, so that a killed run
can resume. `--trials data/model/seed ...` runs some trials in this process.
"""

import dataclasses
import functools
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.support.ast_data import Case, Ranking, rank_dense, read_case
from benchmarks.support.ast_models import ABLATIONS, LENGTH, MODELS, UNTRAINED, fitted, settings_of
from benchmarks.support.common import kept, recorded
from benchmarks.support.harness import Arguments, Results, benchmark
from indexes.fusion import Fusion, fuse
from linker.encoders import folder as folders
from linker.encoders.tokens import load_tokenizer
from linker.papers.all_pairs.evaluate import evaluate_vectors
from linker.papers.all_pairs.result import RANKS
from linker.training.config import OutputConfig, TrainConfig
from linker.training.loop import train
from linker.training.run import build_encoder, joined, learn_as_mean
from linker.training.vectors import start_vectors

DATA = ("statements2articles", "tweets2claims")
SEEDS = (0, 1, 2)
WEIGHTS = [w / 20 for w in range(1, 20)]
DEPTH = 100


def run_trials(wanted: Iterable[str], work: Path) -> None:
    cases: dict[str, Case] = {}
    for trial in wanted:
        data, model, seed = trial.split("/")
        case = cases.get(data) or cases.setdefault(data, read_case(data, work / data))
        run = functools.partial(measure, case, model, int(seed), work / data)
        print(trial, kept(work / data / f"{model}-{seed}.json", run), file=sys.stderr, flush=True)


def measure(case: Case, model: str, seed: int, work: Path) -> dict[str, Any]:
    """Train one model, or load it, and return its figures."""
    folder = work / f"{model}-{seed}"
    if not (folder / "done").exists():
        learn(case, model, seed, work)
        (folder / "done").touch()
    encoder = folders.load(folder)
    encoder.max_length = LENGTH
    texts = {
        split: encoder.encode([case.pairs.texts[t] for t in case.linked[split]]) for split in ("dev", "test")
    }
    documents = encoder.encode(case.pairs.documents)
    figures: dict[str, Any] = {"tables": tables(case, texts["test"], documents), "alpha": alphas(folder)}
    return figures | retrieval(case, {split: rank_dense(texts[split], documents, DEPTH) for split in texts})


def learn(case: Case, model: str, seed: int, work: Path) -> None:
    settings, training = (MODELS | ABLATIONS)[model]
    training = dataclasses.replace(fitted(training, len(case.pairs.links)), seed=seed)
    config = TrainConfig(case.data, OutputConfig(work / f"{model}-{seed}"), settings, training)
    tokenizer, vectors = mean_vectors(case, config, seed, work)
    encoder = build_encoder(settings, tokenizer, vectors, seed)
    if settings.kind == "bag" or model == UNTRAINED:  # the other models start from the bag
        folders.save(encoder, config.output.path)
        return
    pairs = case.pairs
    if training.hard_negatives:
        pairs = dataclasses.replace(pairs, negatives=case.negatives())
    train(encoder, pairs, case.dev, training, config.output.path, resume=True)


def mean_vectors(
    case: Case, config: TrainConfig, seed: int, work: Path
) -> tuple[Any, npt.NDArray[np.float32]]:
    """Return the vectors from which every model of a seed starts, computed once."""
    kind = "cloze-" if config.training.cloze else ""
    tokenizer = load_tokenizer(Path(case.data.word_vectors) / "tokenizer.json")
    raw = kept(work / "vectors.npy", lambda: start_vectors(case.data, joined(case.pairs), 0)[1])
    shared = dataclasses.replace(config, output=OutputConfig(work / f"mean-of-{kind}{seed}"))
    learn_them = functools.partial(learn_as_mean, tokenizer, raw, case.pairs, shared, resume=True)
    return tokenizer, kept(work / f"vectors-{kind}{seed}.npy", learn_them)


def tables(case: Case, tweets: Any, documents: Any) -> dict[str, float]:
    """Return the paper's figures over all pairs of linked test articles and test texts."""
    articles = case.linked_documents("test")
    row_of = {row: i for i, row in enumerate(articles.tolist())}
    number = {text: i for i, text in enumerate(case.linked["test"])}
    links = [(row_of[d], number[t]) for t, d in case.links["test"]]
    found = evaluate_vectors(documents[articles], tweets, links, ranks=RANKS)
    precisions = {f"p@{r}": p for r, p in found.precision_at.items()}
    figures = {"map": found.map_micro, "map_macro": found.map_macro, "auc": found.auc_micro, "mrp": found.mrp}
    return {name: round(value, 4) for name, value in (figures | precisions).items()}


def retrieval(case: Case, dense: dict[str, Ranking]) -> dict[str, Any]:
    """Return figures for dense search and for the hybrid with its weight chosen on dev, over the whole corpus."""

    def hybrid(split: str, weight: float) -> dict[str, float]:
        rows, _ = fuse([case.bm25[split], dense[split]], Fusion("zscore", (1 - weight, weight)), DEPTH)
        return case.figures(split, rows)

    best = max(WEIGHTS, key=lambda weight: hybrid("dev", weight)["mrr"])
    return {
        "dense": case.figures("test", dense["test"][0]),
        "dense_dev": case.figures("dev", dense["dev"][0]),
        "weight": best,
        "hybrid": hybrid("test", best),
        "hybrid_dev": hybrid("dev", best),
    }


def alphas(folder: Path) -> dict[str, float] | None:
    """Return the largest deviation of an α from its start, and the mean share of exact zeros at the end."""
    metrics = folder / "training/metrics.jsonl"
    rows = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
    rows = [row for row in rows if "alpha" in row]
    if not rows:
        return None
    moved = [
        abs(a - b)
        for name in rows[0]["alpha"]
        for a, b in zip(rows[0]["alpha"][name], rows[-1]["alpha"][name], strict=True)
    ]
    zeros = [share for heads in rows[-1]["sparsity"].values() for share in heads]
    return {"largest_move": round(max(moved), 4), "zeros": round(float(np.mean(zeros)), 4)}


def report(work: Path) -> dict[str, Any]:
    """Gather all trials: mean and standard deviation over seeds; rows with fewer seeds in FOLDER stay as recorded."""
    before = recorded("ast_tables")
    found = {data: _of_data(work / data, data) for data in DATA if (work / data).is_dir()}
    return {data: _merged(before.get(data, {}), found.get(data, {})) for data in {**before, **found}}


def _merged(before: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of both records; if a row is in both, the one with more seeds wins, or the new one on a tie.

    Rows from a model's earlier settings are not detected: delete them from the record when settings change.
    """
    seeds = {name: row.get("seeds", 1) for name, row in before.items()}
    rows = before | {name: row for name, row in found.items() if row.get("seeds", 1) >= seeds.get(name, 1)}
    return {name: rows[name] for name in sorted(rows, key=_place)}


def _place(name: str) -> int:
    known = ["BM25", "MiniLM", "MiniLM, best chunk", *MODELS, *(f"{m}, seed 0" for m in ("ast", *ABLATIONS))]
    return known.index(name) if name in known else len(known)


def _of_data(folder: Path, data: str) -> dict[str, Any]:
    case = read_case(data, folder)
    rows: dict[str, Any] = {"BM25": {"retrieval": case.figures("test", case.bm25["test"][0])}}
    rows |= json.loads((folder / "minilm.json").read_text()) if (folder / "minilm.json").exists() else {}
    for model in MODELS:
        found = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{model}-[0-9].json"))]
        if found:
            rows[model] = {"seeds": len(found)} | _summary(found)
            rows[model]["settings"] = settings_of(model, len(case.pairs.links))
    for model in ("ast", *ABLATIONS):  # these have a single seed, and are compared with the star of that seed
        path = folder / f"{model}-0.json"
        if path.exists():
            rows[f"{model}, seed 0"] = {"ablation": True} | _summary([json.loads(path.read_text())])
    return rows


def _summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    keys = {key for figures in found for key in figures}
    summary: dict[str, Any] = {}
    for key in sorted(keys):
        values = [figures[key] for figures in found if figures.get(key) is not None]
        if values and isinstance(values[0], dict):
            summary[key] = _summary(values) | ({"seeds": len(values)} if len(values) < len(found) else {})
        elif values:
            mean, deviation = (
                float(np.mean(values)),
                float(np.std(values, ddof=1)) if len(values) > 1 else None,
            )
            summary[key] = {"mean": round(mean, 4), "sd": None if deviation is None else round(deviation, 4)}
    return summary


@benchmark(
    seed=0,
    work=(Path, "folder that keeps models, vectors and trials"),
    trials=([], "DATA/MODEL/SEED: run these and record nothing"),
    report=(False, "record what is there, run nothing"),
)
def measured(options: Arguments) -> Results | None:
    if not options.report:
        run_trials(
            options.trials or [f"{d}/{m}/{s}" for s in SEEDS for d in DATA for m in MODELS], options.work
        )
    return None if options.trials else report(options.work)
