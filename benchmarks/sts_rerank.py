"""Reranking of tweets → claims by a trained cross-encoder, compared with the tuned hybrid that found them.

`python -m benchmarks.sts_rerank --work FOLDER --train` trains a Cross-BERT-GRU on two thirds of the training links (no
claim occurs in both parts) and saves its scores. Without `--train`, depth and weight are chosen on the held-out third
and the dev links together, and evaluated on test → benchmarks/results/sts_rerank.json. One thread.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.sts import CONFIG, Floats, about, interval, log, saved
from benchmarks.support.common import shared_data
from benchmarks.support.harness import KEPT, Arguments, Results, benchmark
from benchmarks.support.rank_data import links
from indexes.hybrid import Answer
from indexes.interface import Hits
from linker.corpora import Query
from linker.engine.building import BuildOptions, build
from linker.engine.engine import Engine
from linker.scoring.pairs.data import Pair
from linker.scoring.pairs.sts.cross_encoder import CrossEncoder
from linker.scoring.pairs.sts.cross_training import train
from linker.scoring.pairs.sts.recipe import Recipe, new_scorer
from linker.scoring.pairs.sts.scorer_folder import is_saved, load
from linker.scoring.reranking import rerank

Qrels = Mapping[str, Mapping[str, float]]
SET = "tweets2claims"
ENCODER = "minilm@256"  # encoder of the index of claims
DEEPEST = 10
DEPTHS, WEIGHTS = (3, 5, 10), tuple(round(0.1 * step, 1) for step in range(1, 11))
# From the hybrid's top ten. Each claim occurs twice, so one epoch equals two epochs with three negatives each.
NEGATIVES = 6
SETTINGS = replace(CONFIG, loss="soft", epochs=1)
SPLITS = ("held out", "dev", "test")


@dataclass(frozen=True)
class Found:
    """A split's queries, their claims, and the hybrid's hits for them."""

    queries: list[Query]
    qrels: Qrels
    answer: Answer

    @property
    def texts(self) -> list[str]:
        return [query.text for query in self.queries]


def train_reranker(work: Path) -> None:
    """Train on the links that are not held out: a tweet's claim is 5, other claims that the hybrid ranks high 0."""
    folder = work / "reranker"
    if is_saved(folder):
        return
    engine = index(work)
    taught = search(engine, "train", held_out=False)
    start = time.process_time()
    pairs = graded(engine, taught)
    scorer = new_scorer(Recipe(SETTINGS))
    half_precision(scorer)
    train(scorer, pairs, [], SETTINGS, log)
    saved(scorer, folder, {"links": len(taught.queries), "pairs": len(pairs)}, start)


def graded(engine: Engine, taught: Found) -> list[Pair]:
    """Return each link's claim twice, and other claims drawn from the hybrid's top (higher ranks more likely)."""
    rng = np.random.default_rng(0)
    pairs = []
    for query, hits in zip(taught.queries, taught.answer.hits, strict=True):
        right = next(iter(taught.qrels[query.id]))
        wrong = [id_ for id_ in hits.ids[:10] if id_ not in taught.qrels[query.id]]
        odds = 1 / np.sqrt(np.arange(1, len(wrong) + 1))
        chosen = rng.choice(len(wrong), min(NEGATIVES, len(wrong)), replace=False, p=odds / odds.sum())
        grades = [(right, 5.0), (right, 5.0), *((wrong[n], 0.0) for n in chosen.tolist())]
        pairs += [Pair(query.id, query.text, engine.document(id_).full_text, grade) for id_, grade in grades]
    return pairs


def score_candidates(work: Path) -> None:
    """Save the reranker's scores of the hybrid's best documents."""
    path = work / "reranker.json"
    if path.exists():
        return
    engine, scorer = index(work), load(work / "reranker")
    half_precision(scorer)
    found: dict[str, dict[str, float]] = {}
    for split in SPLITS:
        searched = search(engine, split)
        for text, hits in zip(searched.texts, searched.answer.hits, strict=True):
            claims = [engine.document(id_).full_text for id_ in hits.ids[:DEEPEST]]
            found[text] = dict(zip(claims, scorer.score([(text, c) for c in claims]).tolist(), strict=True))
        log(f"{split}: {len(searched.queries)} queries scored")
    path.write_text(json.dumps(found), encoding="utf-8")


def half_precision(scorer: object) -> None:
    """Compute the backbone's products in bfloat16, as in training: half the time."""
    assert isinstance(scorer, CrossEncoder)
    scorer.module.half_precision = True


def index(work: Path) -> Engine:
    """Return the index of the claims, BM25 and MiniLM, fused as `index tune` chooses on dev."""
    folder, dev = work / f"{SET}.index", links(SET)["dev"]
    if not folder.exists():
        build([shared_data() / SET / "corpus.jsonl.gz"], folder, BuildOptions(encoder=ENCODER))
        Engine(folder).tune(dev.queries, dev.qrels)
    return Engine(folder)


def search(engine: Engine, split: str, held_out: bool = True) -> Found:
    """Return the hybrid's results for dev, test, the held-out training links, or the other training links."""
    judged = links(SET)["train" if split in ("train", "held out") else split]
    queries, qrels = judged.queries, judged.qrels
    if split in ("train", "held out"):
        claims = sorted({id_ for relevant in qrels.values() for id_ in relevant})
        chosen = set(np.random.default_rng(0).permutation(claims)[: len(claims) // 3].tolist())
        queries = [q for q in queries if (next(iter(qrels[q.id])) in chosen) == held_out]
    return Found(queries, qrels, engine.search([q.text for q in queries], 50))


class Kept:
    """Precomputed scores as a reranker."""

    def __init__(self, path: Path) -> None:
        self.scores: dict[str, dict[str, float]] = json.loads(path.read_text())

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        return np.array([self.scores[query][text] for query, text in pairs], dtype=np.float32)


def report(work: Path) -> dict[str, Any]:
    """Choose depth and weight on the held-out and dev links; return MRR and success at 1 before and after."""
    engine, reranker = index(work), Kept(work / "reranker.json")
    found = {split: search(engine, split) for split in SPLITS}

    def ranks(split: str, depth: int, weight: float) -> Floats:
        return reciprocal_ranks(engine, found[split], reranker, depth, weight)

    def to_choose_by(choice: tuple[int, float]) -> float:
        return float(np.concatenate([ranks(split, *choice) for split in ("held out", "dev")]).mean())

    depth, weight = max(((d, w) for d in DEPTHS for w in WEIGHTS), key=to_choose_by)
    rows: dict[str, Any] = {
        "settings": asdict(SETTINGS),
        "training": about(work / "reranker"),
        "depth": depth,
        "weight": weight,
    }
    for split in SPLITS:
        before, after = ranks(split, 0, 0.0), ranks(split, depth, weight)
        rows[split] = {
            "queries": len(before),
            "hybrid": [float(before.mean()), float((before == 1).mean())],
            "reranked": [float(after.mean()), float((after == 1).mean())],
            "gain in MRR": [float((after - before).mean()), *gain_interval(after - before)],
            "better, worse": [int((after > before).sum()), int((after < before).sum())],
            "reranker alone": float(ranks(split, depth, 1.0).mean()),
        }
    return rows


def gain_interval(gain: Floats) -> list[float]:
    return interval(lambda rows: float(gain[rows].mean()), len(gain))


def reciprocal_ranks(engine: Engine, found: Found, reranker: Kept, depth: int, weight: float) -> Floats:
    """Return 1 / rank of the first relevant document; below the reranked documents, the hybrid's order applies."""
    first = replace(found.answer, hits=[Hits(h.ids[:depth], h.scores[:depth]) for h in found.answer.hits])
    second = rerank(first, found.texts, reranker, engine.document, depth, weight) if depth else first
    ranks = []
    for query, best, hits in zip(found.queries, second.hits, found.answer.hits, strict=True):
        ids = [*best.ids, *hits.ids[depth:]]
        relevant = found.qrels[query.id]
        ranks.append(next((1 / rank for rank, id_ in enumerate(ids, 1) if relevant.get(id_, 0) > 0), 0.0))
    return np.array(ranks)


@benchmark(seed=0, work=KEPT, train=(False, "train and save the scores, and record nothing"))
def measured(options: Arguments) -> Results | None:
    """Train, or evaluate the saved scores."""
    torch.set_num_threads(1)
    if not options.train:
        return report(options.work)
    train_reranker(options.work)
    score_candidates(options.work)
    return None
