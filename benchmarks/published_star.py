"""Danovitch's tables (methods H): his star, his baselines, one budget; every pair of a test article and a test text.

`python -m benchmarks.published_star --work FOLDER --trials DATA/MODEL/SEED ...` trains with the settings of the ready
configuration `ast-paper`, in which only [encoder] differs from model to model, and keeps a trial's figures in FOLDER.
`--set KEY=VALUE` changes a setting for all models, where the whole budget costs too much; `--report` records what is
in FOLDER in benchmarks/results/published_star.json; `--estimate DATA/MODEL ...` times a few batches where a training
would take too long. GloVe's place is taken by word-vectors-en, exported as its text.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.support.common import record, recorded, shared_data
from benchmarks.support.glove import export
from benchmarks.support.published import row, table
from indexes.dtypes import Float32Array
from linker.base.config import load
from linker.encoders import folder as folders
from linker.encoders.tokens import Tokenizer
from linker.papers.all_pairs.evaluate import evaluate_vectors
from linker.papers.all_pairs.result import RANKS
from linker.training import ready
from linker.training.batches import Pairs
from linker.training.config import TrainConfig
from linker.training.run import build_encoder, joined, read_pairs, run
from linker.training.vectors import start_vectors

DATA = {
    "statements2articles": "statements → fact-checking articles",
    "tweets2claims": "tweets → claims",
}
# The baselines as the paper and its author's code have them, then as linker has them, and the mean as a control.
MODELS = {
    "gru-author": "GRU, last state",
    "bigru-author": "Bi-GRU, last states",
    "cnn-author": "CNN, widths 1 to 4",
    "ast-paper": "AST",
    "gru": "GRU, mean of states",
    "bigru": "Bi-GRU, mean of states",
    "cnn": "CNN, widths 3 to 5",
    "bag": "mean of word vectors",
}
DIM = 128  # of word-vectors-en
LAST = ("encoder.pooling=last", f"encoder.hidden={DIM}", "encoder.projection=0")
FORMS = {
    "gru-author": ("gru", LAST),
    "bigru-author": ("bigru", LAST),
    "cnn-author": ("cnn", ("encoder.widths=[1, 2, 3, 4]", f"encoder.filters={DIM}")),
}  # base and settings of the author's baselines, in which the states have the dimension of the word vectors
ACCEPTED, UNTIL = 0.7, (1, 3, 5)  # the study's cosine; links of an article until which posts are read
STUDY = ["links", "others", "precision", "recall", *(f"until {n}" for n in UNTIL)]
STUDIED = [36, 10, 0.7826]  # figures of STUDY in the paper
STUDY_TITLE = (
    f"the same models: pairs with a cosine of {ACCEPTED} or more, and how many posts are read per article"
)
SAMPLE = 16  # links of a batch that is timed
COUNTED = (
    "a few batches were timed, and stand for all links in all epochs and the dev documents after each epoch"
)
PER_BATCH, WHOLE = f"CPU-seconds per {SAMPLE} links", "CPU-hours per seed"
MEASURES = ["mAP", "AUC", "mRP", *(f"P@{r}" for r in RANKS)]
# The paper's tables 1 and 2, as shares; it prints precisions at r of its own model up to 3,000.
PUBLISHED: dict[str, list[float]] = {
    "gru-author": [0.4353, 0.9603, 0.7668],
    "bigru-author": [0.4758, 0.9605, 0.8029],
    "cnn-author": [0.4981, 0.9709, 0.8105],
    "ast-paper": [0.5301, 0.9750, 0.8131, 1.0, 0.96, 0.945, 0.924, 0.848, 0.7, 0.579],
}
WHY = (
    "other data and fewer links, word vectors of {dim} dimensions in place of GloVe, the first tokens of a text where "
    "the author's code keeps the last 1,000; {links:,} links allow an mRP of {most:.3f} at most"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of vectors, models and trials")
    parser.add_argument("--trials", nargs="*", default=[], metavar="DATA/MODEL/SEED")
    parser.add_argument("--set", nargs="*", default=[], dest="changes", metavar="KEY=VALUE")
    parser.add_argument(
        "--budget", default="own", help="folder, under FOLDER, of trials with the same changes"
    )
    parser.add_argument("--estimate", nargs="*", default=[], metavar="DATA/MODEL")
    parser.add_argument("--report", action="store_true", help="record what is in the folder of work")
    arguments = parser.parse_args()
    for trial in arguments.trials:
        work, (data, model, seed) = arguments.work / arguments.budget, trial.split("/")
        out = work / data / f"{model}-{seed}.json"
        if not out.exists():
            figures = measure(data, model, int(seed), arguments.changes, work)
            out.write_text(json.dumps(figures))
            print(trial, json.dumps(figures), flush=True)
    for trial in arguments.estimate:
        data, model = trial.split("/")
        cost = estimate(data, model, arguments.work / arguments.budget)
        (arguments.work / arguments.budget / data / f"{model}.cost.json").write_text(json.dumps(cost))
        print(trial, json.dumps(cost), flush=True)
    if arguments.report:
        tables = [*report(arguments.work), *costs(arguments.work)]
        record("published_star", {"tables": [*tables, *untouched(tables)]})


def settings(data: str, model: str, seed: int, changes: list[str], work: Path) -> TrainConfig:
    """Return the settings of `ast-paper` on a set of the shared data, with another model's [encoder]."""
    folder = shared_data() / data
    paths = [
        f"data.queries={folder}/queries.jsonl.gz",
        f"data.documents={folder}/corpus.jsonl.gz",
        f"data.train={folder}/qrels/train.tsv",
        f"data.dev={folder}/qrels/dev.tsv",
        f"output.path={work / data / f'{model}-{seed}'}",
        f"data.word_vectors={work / data / 'vectors.txt'}",
        f"training.seed={seed}",
        "training.device=cpu",
    ]
    base, form = FORMS.get(model, (model, ()))
    own = load(ready.find(Path("ast-paper"), paths), TrainConfig, paths)
    other = load(ready.find(Path(base), [*paths, *form]), TrainConfig, [*paths, *form])
    changed = load(ready.find(Path("ast-paper"), paths), TrainConfig, [*paths, *changes])
    return dataclasses.replace(changed, encoder=own.encoder if model == "ast-paper" else other.encoder)


@functools.cache
def prepared(data: str, work: Path) -> tuple[Pairs, Tokenizer, Float32Array]:
    """Return the pairs of a set, and the tokenizer and word vectors with which all models start."""
    config = settings(data, "ast-paper", 0, [], work)
    pairs, _ = read_pairs(config)
    vectors = Path(config.data.word_vectors)
    if not vectors.exists():
        vectors.parent.mkdir(parents=True, exist_ok=True)
        export(shared_data() / "word-vectors-en", joined(pairs), vectors)
    return pairs, *start_vectors(config.data, joined(pairs), 0)


def estimate(data: str, model: str, work: Path) -> dict[str, float]:
    """Return what one seed would cost, in CPU-seconds, from the least of a few batches of SAMPLE links.

    Counted are forward and backward of all links in all epochs, and the encoding of the dev documents after each.
    """
    config = settings(data, model, 0, [], work)
    pairs, tokenizer, vectors = prepared(data, work)
    encoder = build_encoder(config.encoder, tokenizer, vectors, 0)
    steps, readings = [], []
    for start in range(0, 3 * SAMPLE, SAMPLE):
        links = pairs.links[start : start + SAMPLE]
        limit = config.training.max_length
        posts = tokenizer.encode_batch([pairs.texts[text] for text, _ in links], limit)
        articles = tokenizer.encode_batch([pairs.documents[document] for _, document in links], limit)
        before = time.process_time()
        torch.autograd.backward((encoder.vectors(posts) @ encoder.vectors(articles).T).sum())
        steps.append(time.process_time() - before)
        before = time.process_time()
        encoder.encode([pairs.documents[document] for _, document in links])
        readings.append(time.process_time() - before)
    epochs, dev = config.training.epochs, min(config.training.dev_documents, len(pairs.documents))
    seconds = epochs * (len(pairs.links) * min(steps) + dev * min(readings)) / SAMPLE
    return {"training links": len(pairs.links), "a batch": round(min(steps), 3), "all": round(seconds)}


def measure(data: str, model: str, seed: int, changes: list[str], work: Path) -> dict[str, Any]:
    """Train one model, unless it is there, and return its figures on test with the settings that were changed."""
    config = settings(data, model, seed, changes, work)
    pairs, *_ = prepared(data, work)  # writes the word vectors
    start = time.process_time()
    folder = run(config, resume=True, log=lambda line: print(line, file=sys.stderr, flush=True))
    seconds = time.process_time() - start
    encoder = folders.load(folder)
    test = dataclasses.replace(config.data, train=shared_data() / data / "qrels/test.tsv", dev=None)
    asked, _ = read_pairs(dataclasses.replace(config, data=test))
    texts, documents = (sorted({link[side] for link in asked.links}) for side in (0, 1))
    links = [(documents.index(d), texts.index(t)) for t, d in asked.links]
    articles = encoder.encode([asked.documents[d] for d in documents])
    posts = encoder.encode([asked.texts[t] for t in texts])
    found = evaluate_vectors(articles, posts, links, ranks=RANKS, thresholds=[ACCEPTED], until=UNTIL)
    (accepted,) = found.thresholds
    precisions = {f"P@{rank}": value for rank, value in found.precision_at.items()}
    figures = {"mAP": found.map_micro, "AUC": found.auc_micro, "mRP": found.mrp, **precisions}
    return {
        "links": len(links),
        "training_links": len(pairs.links),
        "dim": encoder.dim,
        "changes": changes,
        "epochs": config.training.epochs,
        "length": config.training.max_length,
        "cpu_s": round(seconds, 1),
        "figures": {name: round(value, 4) for name, value in figures.items()},
        "study": {
            "links": accepted.true_positives,
            "others": accepted.false_positives,
            "precision": round(accepted.precision, 4) if accepted.true_positives else None,
            "recall": round(accepted.recall, 4),
            **{f"until {r.links}": _known(r.mean_tweets) for r in found.until},
        },
    }


def _known(mean: float) -> float | None:
    """Return a mean, or None where no article has as many links."""
    return None if math.isnan(mean) else round(mean, 1)


def report(work: Path) -> list[dict[str, Any]]:
    """Return two tables for each set and budget: means over seeds beside the paper's figures, and the study."""
    tables = []
    for folder in sorted(work.glob("*/*/")):
        found = {model: trials for model in MODELS if (trials := _trials(folder, model))}
        if not found:
            continue
        shown = next(iter(found.values()))[0]
        caption = (
            f"{DATA[folder.name]}: {shown['links']:,} test links, {shown['training_links']:,} training links; "
            f"{shown['epochs']} epochs, {shown['length']:,} tokens in training"
        )
        tables += [
            table(
                caption,
                MEASURES,
                [
                    _row(model, trials, "figures", MEASURES, PUBLISHED.get(model, []))
                    for model, trials in found.items()
                ],
                _why(shown),
            ),
            table(
                STUDY_TITLE,
                STUDY,
                [
                    _row(model, trials, "study", STUDY, STUDIED if model == "ast-paper" else [])
                    for model, trials in found.items()
                ],
                "the paper's study is of a hundred labelled posts about one article, ours of all test pairs",
            ),
        ]
    return tables


def untouched(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tables that were recorded of sets that `tables` do not have; a study follows its set's table."""
    made = {title for title in DATA.values() if any(t["title"].startswith(title) for t in tables)}
    kept, keeps = [], False
    for one in recorded("published_star")["tables"]:
        if one["title"] != STUDY_TITLE:
            keeps = not one["title"].startswith(tuple(made))
        if keeps:
            kept.append(one)
    return kept


def costs(work: Path) -> list[dict[str, Any]]:
    """Return a table for each set that was not trained on, of what one seed of each model would cost."""
    tables = []
    for folder in sorted(work.glob("*/*/")):
        paths = {model: folder / f"{model}.cost.json" for model in MODELS}
        found = {model: json.loads(path.read_text()) for model, path in paths.items() if path.exists()}
        if not found:
            continue
        rows = [
            row(MODELS[model], {}, {PER_BATCH: cost["a batch"], WHOLE: cost["all"] / 3600}, runs="estimated")
            for model, cost in found.items()
        ]
        links = next(iter(found.values()))["training links"]
        title = f"{DATA[folder.name]}, {links:,} training links: not run with this budget"
        tables.append(table(title, [PER_BATCH, WHOLE], rows, COUNTED))
    return tables


def _why(trial: dict[str, Any]) -> str:
    """Return why a trial's figures differ from the paper's, with the settings that were changed."""
    most = sum(min(1.0, trial["links"] / rank) for rank in RANKS) / len(RANKS)
    changed = f"; of the settings of `ast-paper`, {', '.join(trial['changes'])}" if trial["changes"] else ""
    return WHY.format(dim=trial["dim"], links=trial["links"], most=most) + changed


def _trials(folder: Path, model: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"{model}-[0-9].json"))]


def _row(
    model: str, trials: list[dict[str, Any]], kind: str, measures: list[str], published: list[float]
) -> dict[str, Any]:
    """Return a model's row: its published figures, and those of a kind of its trials that exist for every seed."""
    here = {m: values for m in measures if None not in (values := [trial[kind][m] for trial in trials])}
    return row(MODELS[model], dict(zip(measures, published, strict=False)), here)


if __name__ == "__main__":
    main()
