"""Which fusion should an untuned index use? Chosen on dev queries of several (corpus, encoder) pairs.

`python -m benchmarks.default_fusion --cache FOLDER` → benchmarks/results/default_fusion.json. The rule: among the
fusions that `linker index tune` tries, take the one with the largest mean lead in MRR over the better single
retriever, averaged over the pairs, among those that never fall behind it by more than .01; if there is none, the one
that falls behind least. The results of both retrievers are cached in FOLDER.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import rank_data
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.meanvectors import mean_vectors
from indexes.fusion import Fusion, Ranking, fuse
from indexes.interface import Document, Matrix
from indexes.text.bm25 import Bm25Index
from indexes.vectors.faiss_index import FaissIndex
from linker.encoders.loading import load_encoder
from linker.engine.tuning import MEASURES, find_relevant, fusions, tune

DEPTH, SEED, FLOOR = 100, 0, -0.01
Encode = Callable[[Sequence[str]], Matrix]
Split = tuple[Ranking, Ranking, list[list[int]]]  # BM25, dense, relevant rows


@dataclass(frozen=True)
class Task:
    """Documents, and judged queries by split: (query text, ids of the relevant documents)."""

    documents: list[Document]
    splits: dict[str, list[tuple[str, list[str]]]]


def task_of(name: str, **splits: str) -> Task:
    """Return a set; `splits` maps our split names to its own (`train` stands in if dev has few queries)."""
    judged = rank_data.links(name)
    asked = {
        ours: [(q.text, [*judged[own].qrels[q.id]]) for q in judged[own].queries]
        for ours, own in splits.items()
    }
    return Task(rank_data.documents_for(name), asked)


def statements(keep: int | None = None) -> Task:
    """Statement → article; `keep` documents only: the relevant ones, then others at random."""
    task = task_of("statements2articles", dev="dev", test="test")
    return task if keep is None else _thinned(task, keep)


def headlines() -> Task:
    """Headline → story; every other story's headline is a dev query."""
    task = task_of("bbc-news", test="test")
    queries = task.splits["test"]
    return Task(task.documents, {"dev": queries[::2], "test": queries[1::2]})


def _thinned(task: Task, keep: int) -> Task:
    wanted = {d for queries in task.splits.values() for _, ids in queries for d in ids}
    others = [i for i, d in enumerate(task.documents) if d.id not in wanted]
    chosen = set(np.random.default_rng(SEED).choice(others, keep - len(wanted), replace=False).tolist())
    kept = [d for i, d in enumerate(task.documents) if d.id in wanted or i in chosen]
    return Task(kept, task.splits)


def minilm(texts: Sequence[str]) -> Matrix:
    vectors: Matrix = _minilm().encode(texts, batch_size=64)
    return vectors


@functools.cache
def _minilm() -> Any:
    return load_encoder("minilm@128")


TWEETS = functools.partial(task_of, "tweets2claims", dev="train", test="test")
DESCRIPTIONS = functools.partial(task_of, "descriptions", test="test")  # no dev: reported only
PAIRS: dict[str, tuple[Callable[[], Task], Encode]] = {
    "statements2articles, mean vectors": (statements, mean_vectors),
    "tweets2claims, mean vectors": (TWEETS, mean_vectors),
    "bbc headlines, mean vectors": (headlines, mean_vectors),
    "descriptions, mean vectors": (DESCRIPTIONS, mean_vectors),
    "tweets2claims, MiniLM": (TWEETS, minilm),
    "bbc headlines, MiniLM": (headlines, minilm),
    "statements2articles (4,000), MiniLM": (functools.partial(statements, 4000), minilm),
}


def answers(name: str, cache: Path) -> dict[str, Split]:
    """Return each split's rankings, from the cache if they are in it."""
    make, encode = PAIRS[name]
    task = make()
    path = cache / f"{name}.npz"
    if not path.exists():
        np.savez(path, **dict(search(task, encode)))
    stored = np.load(path)
    return {split: stored_split(stored, task, split) for split in task.splits}


def stored_split(stored: Any, task: Task, split: str) -> Split:
    """Return a split's rankings from the arrays of `search`, with the relevant rows."""
    rows = {d.id: row for row, d in enumerate(task.documents)}
    return (
        (stored[f"{split}_rows0"], stored[f"{split}_scores0"]),
        (stored[f"{split}_rows1"], stored[f"{split}_scores1"]),
        [[rows.get(d, -1) for d in ids] for _, ids in task.splits[split]],
    )


def search(task: Task, encode: Encode) -> Iterator[tuple[str, Any]]:
    ids, texts = [d.id for d in task.documents], [d.full_text for d in task.documents]
    vectors = encode(texts)
    text, dense = Bm25Index(), FaissIndex(vectors.shape[1])
    text.add(ids, texts)
    dense.add(ids, vectors)
    for split, judged in task.splits.items():
        queries = [q for q, _ in judged]
        sides = text.search_rows(queries, DEPTH), dense.search_rows(encode(queries), DEPTH)
        for number, (rows, scores) in enumerate(sides):
            yield f"{split}_rows{number}", rows
            yield f"{split}_scores{number}", scores


def figures(rows: Any, relevant: list[list[int]]) -> dict[str, float]:
    found = find_relevant(rows, relevant)
    counts = np.array([len(r) for r in relevant], dtype=np.float64)
    return {
        name: round(float(MEASURES[name](found, counts).mean()), 4)
        for name in ("mrr", "success@1", "success@5")
    }


def label(fusion: Fusion) -> str:
    k = f" k={fusion.k}" if fusion.method == "rrf" else ""
    return f"{fusion.method}{k} {fusion.weights[0]:g}:{fusion.weights[1]:g}"


def leads(split: Split) -> dict[str, float]:
    """Return, for every fusion, its lead in MRR over the better single retriever."""
    bm25, dense, relevant = split
    single = max(figures(side[0], relevant)["mrr"] for side in (bm25, dense))
    return {
        label(f): round(figures(fuse([bm25, dense], f, DEPTH)[0], relevant)["mrr"] - single, 4)
        for f in fusions()
    }


def choose(table: dict[str, dict[str, float]]) -> tuple[str, dict[str, dict[str, float]]]:
    """Apply the rule of the module's description to the dev leads, pair → fusion → lead."""
    summary = {
        name: {
            "mean": round(float(np.mean([leads[name] for leads in table.values()])), 4),
            "worst": min(leads[name] for leads in table.values()),
        }
        for name in next(iter(table.values()))
    }
    safe = [n for n, s in summary.items() if s["worst"] >= FLOOR]
    if safe:
        return max(safe, key=lambda n: summary[n]["mean"]), summary
    return max(summary, key=lambda n: summary[n]["worst"]), summary


def shown(split: Split, dev: Split | None, chosen: str) -> dict[str, dict[str, float]]:
    """Return test figures of both retrievers, reciprocal ranks, the chosen default, and the fusion tuned on dev."""
    bm25, dense, relevant = split
    default = next(f for f in fusions() if label(f) == chosen)
    ways = {
        "bm25": bm25,
        "dense": dense,
        "rrf k=60 0.5:0.5": fuse([bm25, dense], Fusion("rrf", (0.5, 0.5)), DEPTH),
        f"default ({chosen})": fuse([bm25, dense], default, DEPTH),
    }
    if dev is not None:
        best = tune(*dev).chosen
        tuned = {"bm25": bm25, "dense": dense}.get(best.mode)
        name = label(best.fusion) if best.fusion else best.mode
        ways[f"tuned on dev ({name})"] = tuned or fuse([bm25, dense], best.fusion or Fusion(), DEPTH)
    return {name: figures(rows, relevant) for name, (rows, _) in ways.items()}


@benchmark(seed=SEED, cache=(Path, "folder of both retrievers' answers, kept"))
def measured(options: Arguments) -> Results:
    options.cache.mkdir(exist_ok=True)
    splits = {}
    for name in PAIRS:
        splits[name] = answers(name, options.cache)
        print(name, {s: len(v[2]) for s, v in splits[name].items()}, flush=True)
    table = {name: leads(split["dev"]) for name, split in splits.items() if "dev" in split}
    chosen, summary = choose(table)
    for name, values in sorted(summary.items(), key=lambda item: -item[1]["mean"])[:15]:
        print(f"{name:<22}", values, [t[name] for t in table.values()])
    test = {name: shown(split["test"], split.get("dev"), chosen) for name, split in splits.items()}
    for name, ways in test.items():
        print(name, *(f"  {way:<34} {values}" for way, values in ways.items()), sep="\n")
    queries = {name: {s: len(v[2]) for s, v in split.items()} for name, split in splits.items()}
    return {"chosen": chosen, "queries": queries, "dev": summary, "dev_leads": table, "test": test}
