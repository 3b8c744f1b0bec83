"""Does `linker index tune` gain on unseen queries, and how many judged queries does it need?

`python -m benchmarks.tuning --cache FOLDER` → benchmarks/results/tuning.json. For each (corpus, encoder) pair, n
judged queries are drawn at random from all splits, a rule chooses a setting on them, and its choice is compared with
the untuned hybrid on all other queries: mean and worst gain in MRR over the draws. The rules: the rule of
`linker.engine.tuning`; the former rule (a single retriever, unless the best hybrid leads it by two standard errors);
and the best setting of all. The results of both retrievers are cached in FOLDER.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import default_fusion
from benchmarks.default_fusion import Encode, Split, Task
from benchmarks.support.harness import Arguments, Results, benchmark
from benchmarks.support.meanvectors import mean_vectors
from indexes.dtypes import Float64Array, Int64Array
from indexes.fusion import Ranking
from linker.engine.tuning.choice import FOLDS, choose
from linker.engine.tuning.lead import Lead
from linker.engine.tuning.settings import Setting, candidates
from linker.engine.tuning.trials import Trials
from linker.evaluation.significance import fold_numbers

DRAWS, SIZES, SPLITS = 100, (30, 100, 200, 400, 800), ("train", "dev", "test")
PAIRS: dict[str, tuple[str, Encode]] = {
    "tweets, mean vectors": ("tweets2claims", mean_vectors),
    "tweets, MiniLM": ("tweets2claims", default_fusion.minilm),
    "statements, mean vectors": ("statements2articles", mean_vectors),
}
SETTINGS = candidates(bm25=True, dense=True)
HYBRIDS = [s for s in SETTINGS if s.fusion]
SINGLES = [s for s in SETTINGS if not s.fusion]


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
    task: Task = default_fusion.task_of(folder, **{split: split for split in SPLITS})
    path = cache / f"{name}, tuning.npz"
    if not path.exists():
        np.savez(path, **dict(default_fusion.search(task, encode)))
    parts = [default_fusion.stored_split(np.load(path), task, split) for split in SPLITS]
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
