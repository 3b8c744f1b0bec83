"""The ranking stage of benchmarks/attention.py: the gain from more vectors per document."""

from __future__ import annotations

import dataclasses
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.support import rank_data
from benchmarks.support.attention_training import Data, encode
from benchmarks.support.late_interaction import (
    kept_types,
    max_sim,
    pooled,
    query_weights,
    relay_sim,
    unit_table,
)
from indexes.text import features
from linker.engine.engine import Engine
from linker.evaluation.first_ranks import mrr
from linker.evaluation.significance import randomisation
from linker.scoring.ranking.candidates import Pool
from linker.scoring.ranking.forest import Forest, compact
from linker.scoring.ranking.groups import names_of
from linker.scoring.ranking.training import grow, lists_of
from linker.training.compact_star import CompactStar

FEW, DEEP, NEAR = 2000, 20, 10  # training queries; candidates from BM25; candidates from the star
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
TREES, SEEDS = 150, (0, 1, 2)
STATES = 300  # dev queries on which states, the most expensive, are compared
Array = npt.NDArray[Any]


@dataclasses.dataclass
class Split:
    """Queries of a split: their rows, candidates, links, and the scores by name, each [n, c]."""

    texts: list[int]
    rows: npt.NDArray[np.int64]
    linked: npt.NDArray[np.bool_]
    scores: dict[str, Array]
    words: Array  # BM25's features, float32 [n, c, f]

    def ranks(self, scores: Array) -> npt.NDArray[np.float64]:
        """Return each query's reciprocal rank under scores [n, c]."""
        return mrr(scores, self.linked, self.rows >= 0)


def stage(model: CompactStar, data: Data, work: Path, part: str) -> dict[str, Any]:
    """Return the measures of every addition; the trees learn from the links of `part`, unseen by the model."""
    splits = _splits(model, data, work, part)
    dev, test = splits["dev"], splits["test"]
    base, (cosine,) = _mixed(dev, test, ["cosine"])
    results: dict[str, Any] = {"BM25 + cosine": {**_figures(base, None), "weights": [cosine]}}
    for name in dev.scores:
        if name not in ("bm25", "cosine"):
            found, weights = _mixed(dev, test, ["cosine", name])
            alone = [split.ranks(split.scores[name]).mean() for split in (dev, test)]
            results[f"+ {name}"] = {
                **_figures(found, base),
                "weights": weights,
                "alone": [round(x, 4) for x in alone],
            }
            results[f"+ {name}"]["kept"] = SHARES.get(name)
    trees = {}
    for name, columns in {
        "ranker": ["cosine"],
        "ranker + maxsim, relays": ["cosine", "maxsim", "relays"],
    }.items():
        trees[name] = _trees(splits, columns)
        results[name] = _figures(trees[name], trees.get("ranker") if name != "ranker" else None)
    return results


SHARES: dict[str, float] = {}


def _splits(model: CompactStar, data: Data, work: Path, part: str) -> dict[str, Split]:
    name = data.case.name
    rank_data.make_index(name, work / name / "index")
    collection = Engine(work / name / "index").collection
    documents, table = encode(model, data.documents), unit_table(model)
    kept = {"maxsim": [np.unique(ids).astype(np.int64) for ids in data.documents]}
    whole = sum(map(len, kept["maxsim"]))
    for alpha in (1.5, 2.0):
        label = f"maxsim, tokens kept by α = {alpha:g}"
        kept[label] = kept_types(model, data.documents, alpha)
        SHARES[label] = round(sum(map(len, kept[label])) / whole, 3)
        both = zip(kept["maxsim"], kept[label], strict=True)
        rival = f"maxsim, as many of the highest idf ({alpha:g})"
        kept[rival] = [ids[np.argsort(-data.idf[ids])[: len(few)]] for ids, few in both]
        SHARES[rival] = SHARES[label]
    splits = {}
    for split, links in _links(data, part).items():
        texts = sorted({text for text, _ in links})
        asked = [data.case.pairs.texts[t] for t in texts]
        ids = [data.texts[t] for t in texts]
        vectors = encode(model, ids)
        best = collection.hybrid.text.search_rows(asked, DEEP)[0]  # type: ignore[union-attr]
        rows = pooled(best, np.argsort(-(vectors @ documents.T), axis=1)[:, :NEAR])
        linked = np.isin(rows + 1_000_000 * np.array(texts)[:, None], [d + 1_000_000 * t for t, d in links])
        forward = collection.forward
        words = np.zeros((*rows.shape, len(features.NAMES)), dtype=np.float32)
        for number, text in enumerate(asked):
            here = rows[number][rows[number] >= 0]
            words[number, : len(here)] = forward.describe(forward.words(text), here)
        cosines = np.einsum("nd,ncd->nc", vectors, documents[rows])
        scores = {"bm25": words[:, :, 0], "cosine": np.where(rows >= 0, cosines, 0)}
        weighed = query_weights(model, ids)
        for label, types in kept.items():
            if label == "maxsim" or split != "train":
                scores[label] = max_sim(weighed, rows, types, table)
        scores["relays"] = relay_sim(model, vectors, rows, data.documents)
        splits[split] = Split(texts, rows, linked & (rows >= 0), scores, words)
    return splits


def _links(data: Data, part: str) -> dict[str, list[tuple[int, int]]]:
    rng = np.random.default_rng(0)
    learned = data.links(part)
    texts = sorted({t for t, _ in learned})
    few = set(rng.permutation(texts)[:FEW].tolist())
    return {"train": [(t, d) for t, d in learned if t in few], **data.case.links}


def _mixed(dev: Split, test: Split, names: list[str]) -> tuple[dict[str, Array], list[float]]:
    """Return the reciprocal ranks of BM25 ÷ its maximum plus weighted scores; the weights are chosen on dev."""

    def total(split: Split, weights: tuple[float, ...]) -> Array:
        bm25 = split.scores["bm25"] / np.maximum(split.scores["bm25"].max(axis=1, keepdims=True), 1e-9)
        return np.asarray(bm25 + sum(w * split.scores[n] for w, n in zip(weights, names, strict=True)))

    best = max(product(WEIGHTS, repeat=len(names)), key=lambda w: dev.ranks(total(dev, w)).mean())
    return {"dev": dev.ranks(total(dev, best)), "test": test.ranks(total(test, best))}, list(best)


def _trees(splits: dict[str, Split], columns: list[str]) -> dict[str, Array]:
    """Return the reciprocal ranks, mean over seeds, of trees on BM25's features and these scores."""
    names = (*features.NAMES, *columns)

    def lists(split: Split) -> Any:
        extra = [split.scores[name][:, :, None].astype(np.float32) for name in columns]
        return lists_of(Pool(split.rows, np.concatenate([split.words, *extra], axis=2), names), split.linked)

    learned, asked = lists(splits["train"]), {s: lists(splits[s]) for s in ("dev", "test")}
    found: dict[str, list[Array]] = {"dev": [], "test": []}
    for seed in SEEDS:
        forest = Forest.read(compact(grow(learned, names_of(names), TREES, seed)))
        for name, part in asked.items():
            scores = np.full(splits[name].rows.shape, -np.inf)
            scores[splits[name].rows >= 0] = forest.scores(part.x)
            found[name].append(splits[name].ranks(scores))
    return {name: np.mean(ranks, axis=0) for name, ranks in found.items()}


def _figures(found: dict[str, Array], before: dict[str, Array] | None) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for split, ranks in found.items():
        row[split] = {"mrr": round(float(ranks.mean()), 4)}
        if before is not None:
            row[split] |= {
                "lead": round(float((ranks - before[split]).mean()), 4),
                "p": round(randomisation(ranks, before[split]), 4),
            }
    return row
