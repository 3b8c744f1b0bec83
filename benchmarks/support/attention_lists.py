"""Candidate lists with the learned ranker's out-of-fold scores, and how a compact star learns from them.

The teacher is the ranker of BM25's candidates by words alone, so that no encoder's errors teach the encoder. Queries
without links are sentences from documents; the source document is not a candidate.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from benchmarks.support import rank_data
from benchmarks.support.attention_training import Data, Recipe, Steps, dropped, window
from linker.engine.engine import Engine
from linker.scoring.ranking.candidates import Gatherer, PoolSettings
from linker.scoring.ranking.forest import Forest, compact
from linker.scoring.ranking.groups import names_of
from linker.scoring.ranking.learning import gathered, relevant_rows
from linker.scoring.ranking.training import STEPS, _out_of_fold, grow, lists_of
from linker.training.compact_star import CompactStar
from linker.training.losses import info_nce

TREES = 150
QUERIES, SENTENCES = 5000, 4000


@dataclass(frozen=True)
class Lists:
    """Token ids of queries, their candidates (int64 [n, c], −1: none), the ranker's scores and the links [n, c].

    `texts` are the rows of the queries among the set's texts, or empty if they are not among them.
    """

    queries: list[npt.NDArray[np.int32]]
    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    linked: npt.NDArray[np.bool_]
    texts: npt.NDArray[np.int64]

    def of(self, chosen: set[int]) -> Lists:
        """Return the lists of the texts whose rows are `chosen`; all if the queries are not such texts."""
        if not len(self.texts):
            return self
        inside = np.array([text in chosen for text in self.texts.tolist()])
        queries = [q for q, here in zip(self.queries, inside, strict=True) if here]
        return Lists(queries, self.rows[inside], self.scores[inside], self.linked[inside], self.texts[inside])


def teach(data: Data, work: Path, seed: int = 0) -> tuple[Lists, Lists]:
    """Return the lists for training texts and for sentences; cached in `work`."""
    folder = work / data.case.name
    path = folder / "lists.npz"
    if not path.exists():
        start = time.process_time()
        np.savez(path, **_scored(data, folder, seed))
        print(f"lists: {time.process_time() - start:.0f} CPU s", file=sys.stderr)
    with np.load(path) as kept:
        ids = [data.texts[t] for t in kept["texts"]]
        sentences = np.split(kept["sentences"], kept["ends"][:-1])
        return (
            Lists(ids, kept["rows"], kept["scores"], kept["linked"], kept["texts"]),
            Lists(
                list(sentences),
                kept["other_rows"],
                kept["other_scores"],
                np.zeros_like(kept["other_rows"], dtype=bool),
                np.empty(0, dtype=np.int64),
            ),
        )


def _scored(data: Data, folder: Path, seed: int) -> dict[str, Any]:
    name, settings = data.case.name, PoolSettings()
    rank_data.make_index(name, folder / "index")
    engine = Engine(folder / "index")
    judged = rank_data.links(name)["train"]
    few = np.random.default_rng(seed).permutation(len(judged.queries))[:QUERIES]
    judged = rank_data.Judged([judged.queries[i] for i in few], judged.qrels)
    gatherer = Gatherer(engine.collection, settings, None)
    pool = gathered(gatherer, [q.text for q in judged.queries])
    linked = relevant_rows(gatherer.ranking, judged.queries, judged.qrels, pool.rows)
    place = {text: row for row, text in enumerate(data.case.pairs.texts)}
    lists, names = lists_of(pool, linked), names_of(pool.names)
    fold = np.random.default_rng(seed).permutation(len(linked)) % (2 if len(linked) > 3000 else 5)
    scores = _out_of_fold(lists, pool.valid, names, fold, seed, lambda step: None)[0][STEPS.index(TREES)]
    forest = Forest.read(compact(grow(lists, names, TREES, seed)))
    texts, own = _sentences(data, np.random.default_rng(seed))
    other = gathered(gatherer, texts)
    other_scores = np.full(other.rows.shape, -np.inf)
    other_scores[other.valid] = forest.scores(lists_of(other, other.valid).x)
    other_scores[other.rows == own[:, None]] = -np.inf
    ids = [np.array(i, dtype=np.int32) for i in data.tokenizer.encode_batch(texts, 256)]
    return {
        "texts": np.array([place[q.text] for q in judged.queries]), "rows": pool.rows, "scores": scores,
        "linked": linked, "sentences": np.concatenate(ids), "ends": np.cumsum([len(i) for i in ids]),
        "other_rows": np.where(other.rows == own[:, None], -1, other.rows), "other_scores": other_scores,
    }  # fmt: skip


def _sentences(data: Data, rng: np.random.Generator) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return sentences of 8 to 40 words, one per document at most, and the rows of their documents."""
    texts, rows = [], []
    documents = data.case.pairs.documents
    for row in rng.permutation(len(documents)):
        found = [s for s in documents[row].replace("\n", " ").split(". ") if 8 <= len(s.split()) <= 40]
        if found:
            texts.append(found[int(rng.integers(len(found)))])
            rows.append(int(row))
        if len(texts) == SENTENCES:
            break
    return texts, np.array(rows)


def learn_lists(
    model: CompactStar,
    data: Data,
    lists: Lists,
    recipe: Recipe,
    *,
    size: int = 6,
    soft: float = 1.0,
    tau: float = 1.0,
) -> list[float]:
    """Train on lists of `size` candidates, linked and the teacher's best ones first; return each epoch's loss.

    The loss is `soft` times the cross-entropy between the softmaxes of the teacher's scores ÷ `tau` and of the
    cosines, plus InfoNCE of the links with all candidates of the batch as negatives.
    """
    rng = np.random.default_rng([recipe.seed, 11])
    torch.manual_seed(recipe.seed)
    useful = np.flatnonzero((lists.rows >= 0).sum(1) >= size)
    if lists.linked.any():
        useful = useful[lists.linked[useful].any(1)]
    steps = Steps(model, recipe, recipe.epochs * -(-len(useful) // recipe.batch))
    for _ in range(recipe.epochs):
        order = rng.permutation(useful)
        for start in range(0, len(order), recipe.batch):
            chosen = order[start : start + recipe.batch]
            steps.step(_list_loss(model, data, lists, chosen, recipe, rng, size, soft, tau))
        steps.end_epoch()
    return steps.losses


def _list_loss(
    model: CompactStar, data: Data, lists: Lists, chosen: Any, recipe: Recipe, rng: Any, size: int, soft: float,
    tau: float,
) -> torch.Tensor:  # fmt: skip
    noisy = lists.scores[chosen] + rng.gumbel(
        size=(len(chosen), lists.scores.shape[1])
    )  # a sample that favours the best
    noisy = np.where(lists.rows[chosen] >= 0, noisy, -np.inf) + 1e6 * lists.linked[chosen]
    picked = np.argsort(-noisy, axis=1)[:, :size]
    rows = np.take_along_axis(lists.rows[chosen], picked, 1)
    scores = torch.from_numpy(np.take_along_axis(lists.scores[chosen], picked, 1)).float()
    linked = np.take_along_axis(lists.linked[chosen], picked, 1)
    columns, place = np.unique(rows, return_inverse=True)
    place = place.reshape(rows.shape)
    queries = model(dropped([lists.queries[q] for q in chosen], recipe.dropout, rng))
    documents = model(dropped([window(data.documents[d], rng) for d in columns], recipe.dropout, rng))
    cosines = (queries[:, None] * documents[torch.from_numpy(place)]).sum(-1)
    target = functional.softmax(scores / tau, dim=1)
    loss = -soft * (target * functional.log_softmax(cosines / recipe.temperature, dim=1)).sum(1).mean()
    if linked.any():
        positives = torch.zeros(len(chosen), len(columns), dtype=torch.bool)
        positives[torch.arange(len(chosen))[:, None].expand(place.shape)[torch.from_numpy(linked)],
                  torch.from_numpy(place[linked])] = True  # fmt: skip
        loss = loss + info_nce(queries, documents, positives, recipe.temperature)
    return loss
