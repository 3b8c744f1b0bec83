"""Are link probabilities calibrated, and does a promised precision hold?

`python -m benchmarks.precision --work FOLDER` → benchmarks/results/precision.json. The model was chosen on training
queries of statements and tweets.

- `splits`: 300 random splits of all queries of a set into three. The model learns from the first part, thresholds
  from the second, and the third measures their precision: for the promised threshold, the plain empirical threshold
  (the lowest above which .9 of the second part's links are right), and the oracle's (the same on the third part).
- `measures`: learned from train and dev, measured on test; on random halves if a set has no splits. 95 % bootstrap.
- `shift`: tweets with a threshold from dev, and its precision on test.
- `drift`: how often batches of 100 queries raise the warning.

Indexes and hits are kept in FOLDER.
"""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.common import cpu_time
from benchmarks.support.harness import KEPT, Arguments, Results, benchmark
from benchmarks.support.hit_data import SETS, hits_of, joined, open_index
from benchmarks.support.rank_data import links
from indexes.dtypes import BoolArray, Float64Array
from linker.scoring.probability import drift, folder
from linker.scoring.probability.calibration import Calibration, Source
from linker.scoring.probability.features import names
from linker.scoring.probability.fitting import (
    Hitlist,
    auc,
    brier_gain,
    calibration_error,
    fit_held_out,
    noise_floor,
)
from linker.scoring.probability.promise import promise

SPLITS, PRECISION = 300, 0.9
SIZE = 1000  # queries for fitting, and as many for the threshold; larger sets are also split into thirds
BATCH, BATCHES = 100, 1000
DRAWS = 1000
NO_SOURCE = Source("", "0" * 16, "0" * 16, 0, 0)


def first(calibration: Calibration, part: Hitlist) -> tuple[Float64Array, BoolArray]:
    """Return P(link) and correctness of the first hits; a query without a hit has P(link) = 0."""
    said = calibration.probabilities(part.features[:, 0])
    return np.where(part.rows[:, 0] >= 0, said, 0.0), part.relevant[:, 0]


def most_links(said: Float64Array, right: BoolArray) -> float:
    """Return the threshold that keeps the most links with a precision of at least PRECISION; infinity if none does."""
    order = np.argsort(-said, kind="stable")
    share = np.cumsum(right[order]) / np.arange(1, len(said) + 1)
    good = np.flatnonzero(share >= PRECISION)
    return float(said[order[good[-1]]]) if len(good) else np.inf


def split(hits: Hitlist, vectors: bool, size: int, seed: int) -> dict[str, float]:
    """Return the precision and coverage at one random split's thresholds."""
    order = np.random.default_rng(seed).permutation(len(hits.rows))
    marks = [
        np.isin(np.arange(len(order)), part)
        for part in (order[:size], order[size : 2 * size], order[2 * size :])
    ]
    calibration = fit_held_out(hits.part(marks[0]), hits.part(marks[1]), names(vectors), NO_SOURCE, seed)
    probabilities, right = first(calibration, hits.part(marks[2]))
    kept = promise(calibration.held, calibration.right, PRECISION)
    oracle = (probabilities >= most_links(probabilities, right)).mean()
    out = {"none": float(kept is None)}
    plain = most_links(calibration.held, calibration.right)
    for name, threshold in (("promise", kept.threshold if kept else np.inf), ("plain", plain)):
        above = probabilities >= threshold
        precision = float(right[above].mean()) if above.any() else 1.0
        out |= {
            f"{name}_held": float(precision >= PRECISION), f"{name}_precision": precision,
            f"{name}_coverage": float(above.mean() / oracle) if oracle else 1.0,
        }  # fmt: skip
    return out


def splits(hits: Hitlist, vectors: bool, size: int) -> dict[str, Any]:
    """Return means over the random splits, with 95 % intervals of shares (Wilson)."""
    rows = [split(hits, vectors, size, seed) for seed in range(SPLITS)]
    means: dict[str, Any] = {key: round(float(np.mean([row[key] for row in rows])), 4) for key in rows[0]}
    for name in ("promise", "plain"):
        means[f"{name}_held_interval"] = wilson(means[f"{name}_held"], SPLITS)
        coverage = [row[f"{name}_coverage"] for row in rows]
        means[f"{name}_coverage_middle_90"] = [
            round(float(q), 4) for q in np.quantile(coverage, (0.05, 0.95))
        ]
    return {"queries": len(hits.rows), "learn": size, "test": len(hits.rows) - 2 * size, **means}


def wilson(share: float, count: int, z: float = 1.96) -> list[float]:
    """Return the 95 % interval of a share of `count` (Wilson, 1927)."""
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * np.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return [round(float(middle - half), 4), round(float(middle + half), 4)]


def measures(parts: dict[str, Hitlist], vectors: bool) -> dict[str, Any]:
    """Return the test measures of a model fitted on train and dev; without train, fitted on half of test."""
    if "train" in parts:
        learn, test = joined([parts["train"], parts["dev"]]), parts["test"]
    else:
        half = np.random.default_rng(0).permutation(len(parts["test"].rows)) % 2 == 0
        learn, test = parts["test"].part(half), parts["test"].part(~half)
    calibration = fit_held_out(learn, test, names(vectors), NO_SOURCE)
    probabilities, right = first(calibration, test)
    score = test.features[:, 0, 0]
    random = np.random.default_rng(0)
    samples = [random.integers(0, len(probabilities), len(probabilities)) for _ in range(DRAWS)]
    figures: dict[str, Callable[[Any], float]] = {
        "calibration_error": lambda i: calibration_error(probabilities[i], right[i]),
        "brier_gain": lambda i: brier_gain(probabilities[i], right[i]),
        "auc": lambda i: auc(probabilities[i], right[i]),
        "auc_bm25": lambda i: auc(score[i], right[i]),
    }
    everything = np.arange(len(probabilities))
    out: dict[str, Any] = {"test": len(probabilities)}
    for name, figure in figures.items():
        low, high = np.quantile([figure(i) for i in samples], (0.025, 0.975))
        out[name] = [round(figure(everything), 4), round(float(low), 4), round(float(high), 4)]
    return {**out, "noise_floor": round(noise_floor(probabilities), 4)}


def shift(parts: dict[str, Hitlist], vectors: bool) -> dict[str, Any]:
    """Fit the model on train tweets and the threshold on dev (which is easier); measure the precision on test."""
    calibration = fit_held_out(parts["train"], parts["dev"], names(vectors), NO_SOURCE)
    probabilities, right = first(calibration, parts["test"])
    guarantee = promise(calibration.held, calibration.right, PRECISION)
    above = probabilities >= (guarantee.threshold if guarantee else np.inf)
    features = parts["test"].features[:, 0]
    return {
        "threshold": round(guarantee.threshold, 4) if guarantee else None,
        "dev": [guarantee.right, guarantee.links] if guarantee else None,
        "test": [int(right[above].sum()), int(above.sum())],
        "precision": round(float(right[above].mean()), 4) if above.any() else None,
        "warning": drift.warning(calibration.seen, features, calibration.names),
    }


def alarms(sets: dict[str, Hitlist], vectors: bool) -> dict[str, Any]:
    """Return how often batches raise the warning, by their source set, for a calibration on each set."""
    out: dict[str, Any] = {}
    for name, hits in sets.items():
        features = hits.features[:, 0][hits.rows[:, 0] >= 0]
        random = np.random.default_rng(0)
        rows = []
        for _ in range(BATCHES):
            order = random.permutation(len(features))
            sample = {
                n: np.sort(features[order[BATCH : BATCH + 1000], i]) for i, n in enumerate(names(vectors))
            }
            rows.append(bool(drift.warning(sample, features[order[:BATCH]], names(vectors))))
        out[name] = {"the same": [round(float(np.mean(rows)), 4), *wilson(float(np.mean(rows)), BATCHES)]}
        for other, strange in sets.items():
            if other != name:
                batches = (random.choice(len(strange.rows), BATCH, False) for _ in range(100))
                warnings = [
                    drift.warning(sample, strange.features[batch, 0], names(vectors)) for batch in batches
                ]
                out[name][other] = round(float(np.mean([bool(warning) for warning in warnings])), 4)
    return out


def cost(work: Path, vectors: bool) -> dict[str, float]:
    """CPU milliseconds per query on statements, with and without P(link); one by one, then all at once."""
    engine = open_index(SETS[0], work, vectors=vectors)
    judged = links(SETS[0])["dev"]
    calibration = engine.calibrate(judged.queries, judged.qrels)
    folder.save(calibration, work / "calibration")
    engine.store_calibration(work / "calibration")
    texts = [q.text for q in judged.queries[:300]]
    out = {}
    for name, told in (("with", True), ("without", False)):
        engine.search(texts[:10], probabilities=told)
        find = functools.partial(engine.search, probabilities=told)
        out[f"alone_{name}"] = cpu_time(lambda find=find: [find(text) for text in texts], 3)  # type: ignore[misc]
        out[f"batch_{name}"] = cpu_time(functools.partial(find, texts), 3)
    return {key: round(value / len(texts) * 1e3, 3) for key, value in out.items()}


@benchmark(seed=0, work=KEPT)
def measured(options: Arguments) -> Results:
    results: Results = {"splits": {}, "measures": {}, "shift": {}, "drift": {}, "cost": {}}
    for kind, vectors in (("BM25", False), ("word vectors", True)):
        parts = {name: hits_of(name, options.work, vectors=vectors) for name in SETS}
        whole = {name: joined(list(p.values())) for name, p in parts.items()}
        results["splits"][kind] = {
            f"{name}, {size:,}": splits(hits, vectors, size)
            for name, hits in whole.items()
            for size in sorted({min(SIZE, len(hits.rows) // 3), len(hits.rows) // 3})
        }
        results["measures"][kind] = {name: measures(p, vectors) for name, p in parts.items()}
        results["shift"][kind] = shift(parts["tweets2claims"], vectors)
        results["drift"][kind] = alarms(whole, vectors)
        results["cost"][kind] = cost(options.work, vectors)
        print(json.dumps({part: found[kind] for part, found in results.items()}, indent=1), flush=True)
    return results
