"""Does `linker index tune` improve results on unseen queries, and how many judged queries does it need?

`python -m benchmarks.tuning --cache FOLDER` → benchmarks/results/tuning.json. For each (corpus, encoder) pair, n
judged queries are drawn at random from all splits, a rule chooses a setting on them, and its choice is compared with
the untuned hybrid on all other queries: mean and worst gain in MRR over the draws. The rules: the rule of
`linker.engine.tuning`; the former rule (a single retriever, unless the best hybrid leads it by two standard errors);
and the best setting of all. The results of both retrievers are cached in FOLDER.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support import rank_data
from benchmarks.support.common import kept
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.meanvectors import mean_vectors
from indexes.dtypes import Float64Array, Int64Array
from indexes.fusion import Ranking
from indexes.interface import Document, Matrix
from indexes.text.bm25 import Bm25Index
from indexes.vectors.faiss_index import FaissIndex
from linker.encoders.loading import load_encoder
from linker.engine.tuning.choice import FOLDS, choose
from linker.engine.tuning.measures import Lead
from linker.engine.tuning.settings import Setting, Trials, candidates
from linker.evaluation.significance import fold_numbers

Encode = Callable[[Sequence[str]], Matrix]
Split = tuple[Ranking, Ranking, list[list[int]]]  # BM25, dense, relevant rows
DEPTH = 100
DRAWS, SIZES, SPLITS = 100, (30, 100, 200, 400, 800), ("train", "dev", "test")
PAIRS: dict[str, tuple[str, Encode]] = {
    "tweets, mean vectors": ("tweets2claims", mean_vectors),
    "tweets, MiniLM": (
        "tweets2claims",
        lambda texts: load_encoder("minilm@128").encode(texts, batch_size=64),
    ),
    "statements, mean vectors": ("statements2articles", mean_vectors),
}
SETTINGS = candidates(bm25=True, dense=True)
HYBRIDS = [s for s in SETTINGS if s.fusion]
SINGLES = [s for s in SETTINGS if not s.fusion]


@dataclass(frozen=True)
class Task:
    """Documents, and judged queries by split: (query text, ids of the relevant documents)."""

    documents: list[Document]
    splits: dict[str, list[tuple[str, list[str]]]]


def task_of(name: str) -> Task:
    """Return a set of the shared data."""
    judged = rank_data.links(name)
    asked = {s: [(q.text, [*judged[s].qrels[q.id]]) for q in judged[s].queries] for s in SPLITS}
    return Task(rank_data.documents_for(name), asked)


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


class Drawn(Trials):
    """The trials on a subset of the queries."""

    def __init__(self, whole: Trials, rows: Int64Array) -> None:
        self.whole, self.rows = whole, rows

    def values(self, setting: Setting) -> Float64Array:
        """Return the value of each drawn query under a setting."""
        return self.whole.values(setting)[self.rows]


def tuned(trials: Trials, queries: int, seed: int) -> Setting:
    return choose(trials, HYBRIDS, SINGLES, fold_numbers(queries, FOLDS, seed)).setting


def before(trials: Trials, queries: int, seed: int) -> Setting:
    everything = np.ones(queries, dtype=bool)
    hybrid, single = trials.best(HYBRIDS, everything), trials.best(SINGLES, everything)
    return hybrid if Lead.of(trials.values(hybrid), trials.values(single)).exceeds(2) else single


def best(trials: Trials, queries: int, seed: int) -> Setting:
    return trials.best(SETTINGS, np.ones(queries, dtype=bool))


RULES: dict[str, Callable[[Trials, int, int], Setting]] = {
    "tune": tuned, "the rule before": before, "the best of all": best,
}  # fmt: skip


def gains(trials: Trials, size: int) -> dict[str, dict[str, float]]:
    """Return each rule's mean and worst gain on the queries that were not drawn."""
    count = len(trials.values(SETTINGS[0]))
    out: dict[str, list[float]] = {rule: [] for rule in RULES}
    for seed in range(DRAWS):
        order = np.random.default_rng([size, seed]).permutation(count)
        drawn, rest = Drawn(trials, order[:size]), Drawn(trials, order[size:])
        for rule, choice in RULES.items():
            setting = choice(drawn, size, seed)
            out[rule].append(float((rest.values(setting) - rest.values(SETTINGS[0])).mean()))
    return {rule: {"mean": round(float(np.mean(g)), 4), "worst": round(min(g), 4)} for rule, g in out.items()}


def load_trials(name: str, cache: Path) -> Trials:
    folder, encode = PAIRS[name]
    task = task_of(folder)
    stored = kept(cache / f"{name}, tuning.npz", lambda: dict(search(task, encode)))
    parts = [stored_split(stored, task, split) for split in SPLITS]
    return Trials(joined(parts, 0), joined(parts, 1), [rows for part in parts for rows in part[2]], "mrr")


def joined(parts: Sequence[Split], side: int) -> Ranking:
    rankings: list[Any] = [part[side] for part in parts]
    return np.concatenate([r for r, _ in rankings]), np.concatenate([s for _, s in rankings])


@benchmark(seed=0, cache=(Path, "folder of both retrievers' answers, kept"))
def measured(options: Arguments) -> Results:
    options.cache.mkdir(exist_ok=True)
    results: Results = {}
    for name in PAIRS:
        trials = load_trials(name, options.cache)
        default = trials.values(SETTINGS[0])
        results[name] = {
            "queries": len(default), "default_mrr": round(float(default.mean()), 4),
            "gains": {str(size): gains(trials, size) for size in SIZES},
        }  # fmt: skip
        print(name, results[name], flush=True)
    return {"draws": DRAWS, "pairs": results}
