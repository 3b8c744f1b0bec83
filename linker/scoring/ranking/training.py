"""Training of a ranker: LambdaMART over the candidates of judged queries, cross-validated and calibrated.

Burges, "From RankNet to LambdaRank to LambdaMART" (2010), as LightGBM grows it. The number of trees and the
calibration come from out-of-fold scores; the final trees learn from all queries.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from indexes.dtypes import BoolArray, Float32Array, Float64Array, Int64Array
from indexes.errors import importing
from linker.base.errors import InputError
from linker.evaluation.first_ranks import mrr
from linker.evaluation.significance import fold_numbers
from linker.scoring.ranking import calibration
from linker.scoring.ranking.candidates import Pool, PoolSettings
from linker.scoring.ranking.forest import Forest, compact
from linker.scoring.ranking.groups import names_of, with_group
from linker.scoring.ranking.ranker import Ranker

FEWEST = 100  # minimum number of queries with a relevant candidate
STEPS = (25, 50, 75, 100, 150, 200, 250, 300, 400)  # numbers of trees to choose from
GOOD_ENOUGH = 0.0005  # fewer trees are chosen if they lose less MRR than this
PARAMETERS = {
    "objective": "lambdarank", "label_gain": [0, 1], "lambdarank_truncation_level": 10, "learning_rate": 0.05,
    "feature_fraction": 0.5, "bagging_fraction": 0.8, "bagging_freq": 1, "lambda_l2": 5.0, "max_bin": 127,
    "use_missing": False, "deterministic": True, "force_row_wise": True, "num_threads": 1, "verbose": -1,
}  # fmt: skip


@dataclass(frozen=True)
class TrainingLists:
    """Lists of candidates with all their features, end to end: x [m, f], sizes [n], relevant (bool [m])."""

    x: Float32Array
    sizes: Int64Array
    relevant: BoolArray

    def part(self, chosen: BoolArray) -> TrainingLists:
        """Return the lists marked in `chosen` (bool [n])."""
        inside = np.repeat(chosen, self.sizes)
        return TrainingLists(self.x[inside], self.sizes[chosen], self.relevant[inside])


def lists_of(pool: Pool, relevant: BoolArray) -> TrainingLists:
    """Return the lists of a pool, given which of its candidates are relevant (bool [n, c])."""
    parts = []
    for start in range(0, len(pool.rows), 512):
        here = slice(start, start + 512)
        parts.append(with_group(pool.features[here], pool.valid[here], pool.names)[pool.valid[here]])
    return TrainingLists(np.concatenate(parts), pool.valid.sum(axis=1), relevant[pool.valid])


def shape_of(queries: int) -> dict[str, Any]:
    """Return the size of trees for that many queries."""
    if queries < 500:
        return {"num_leaves": 7, "min_data_in_leaf": 20}
    return {"num_leaves": 15 if queries < 3000 else 31, "min_data_in_leaf": 50}


def grow(lists: TrainingLists, names: Sequence[str], trees: int, seed: int) -> str:
    """Return trees grown on the lists with right and wrong candidates, as LightGBM's text. Raises MissingExtraError."""
    with importing("training a ranker", "rank"):
        import lightgbm

    useful = [bool(r.any() and not r.all()) for r in np.split(lists.relevant, np.cumsum(lists.sizes)[:-1])]
    part = lists.part(np.array(useful))
    data = lightgbm.Dataset(
        part.x, part.relevant.astype(int), group=part.sizes, feature_name=list(names), free_raw_data=True
    )
    parameters = {**PARAMETERS, **shape_of(len(part.sizes)), "seed": seed}
    return str(lightgbm.train(parameters, data, trees).model_to_string())


@dataclass(frozen=True)
class Training:
    """A ranker, its trees' text, and its cross-validation: MRR and S@1 of the ranker and of the first retriever.

    `held` float64 [n, c]: the scores of the queries' candidates by trees that never saw the query; `absent`: the same
    for the candidates that are not relevant, without the relevant ones.
    """

    ranker: Ranker
    text: str
    queries: int
    found: int  # number of queries with a relevant candidate
    mrr: float
    success: float
    mrr_before: float
    success_before: float
    held: Float64Array = field(default_factory=lambda: np.empty((0, 0)), repr=False, kw_only=True)
    absent: Float64Array = field(default_factory=lambda: np.empty((0, 0)), repr=False, kw_only=True)

    def figures(self) -> dict[str, float]:
        """Return the figures as JSON values."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.type in ("int", "float")}


def train(
    pool: Pool,
    relevant: BoolArray,
    settings: PoolSettings,
    *,
    seed: int = 0,
    encoder: str = "",
    about: Mapping[str, Any] | None = None,
    advance: Callable[[str], object] = lambda step: None,
) -> Training:
    """Return a ranker trained on candidates, `relevant` bool [n, c]. Raises InputError, MissingExtraError."""
    found = int(relevant.any(axis=1).sum())
    if found < FEWEST:
        raise InputError(
            f"{found} queries have a relevant document among their candidates, but a ranker needs {FEWEST}: "
            "judge more queries; for an index without an encoder and without dates, linker has a ranker of its own"
        )
    lists, names = lists_of(pool, relevant), names_of(pool.names)
    folds = 5 if found < 3000 else 2
    fold = fold_numbers(len(relevant), folds, seed)
    out, forests = _out_of_fold(lists, pool.valid, names, fold, seed, advance)
    means = [float(mrr(scores, relevant, pool.valid).mean()) for scores in out]
    best = next(i for i, mean in enumerate(means) if mean >= max(means) - GOOD_ENOUGH)
    advance("growing the trees")
    text = compact(grow(lists, names, STEPS[best], seed))
    hidden = _hide(pool, relevant, fold, [Forest(f.names, f.trees[: STEPS[best]]) for f in forests])
    fitted = calibration.fit(out[best], hidden, pool.valid, relevant, pool.features, pool.names)
    about = {"queries": len(relevant), "found": found, "seed": seed, "trees": STEPS[best], **(about or {})}
    ranker = Ranker(settings, pool.names, Forest.read(text), fitted, encoder=encoder, about=about)
    figures = after_and_before(out[best], relevant, pool.valid)
    training = Training(ranker, text, len(relevant), found, *figures)
    return dataclasses.replace(training, held=out[best], absent=hidden)


def after_and_before(scores: Float64Array, relevant: BoolArray, valid: BoolArray) -> list[float]:
    """Return MRR and S@1 of candidates by `scores` [n, c], and then those of the candidates in their own order."""
    figures = []
    for order in (scores, np.broadcast_to(-np.arange(relevant.shape[1]), relevant.shape)):
        reciprocal = mrr(order, relevant, valid)
        figures += [float(reciprocal.mean()), float((reciprocal == 1).mean())]
    return figures


def _out_of_fold(
    lists: TrainingLists,
    valid: BoolArray,
    names: Sequence[str],
    fold: Int64Array,
    seed: int,
    advance: Callable[[str], object],
) -> tuple[list[Float64Array], list[Forest]]:
    """Return, for each number of trees in STEPS, the scores [n, c] that trees give to lists that they never saw.

    `fold` [n] is the fold of each list; the second value has each fold's largest forest, which never saw its lists.
    """
    out = [np.full(valid.shape, -np.inf) for _ in STEPS]
    forests = []
    folds = int(fold.max()) + 1
    for number in range(folds):
        advance(f"cross-validation {number + 1} of {folds}")
        forest = Forest.read(compact(grow(lists.part(fold != number), names, STEPS[-1], seed)))
        forests.append(forest)
        part, cells = lists.part(fold == number), valid & (fold == number)[:, None]
        start, sums = 0, np.zeros(len(part.x))
        for scores, step in zip(out, STEPS, strict=True):
            sums = sums + Forest(forest.names, forest.trees[start:step]).scores(part.x)
            scores[cells], start = sums, step
    return out, forests


def _hide(pool: Pool, relevant: BoolArray, fold: Int64Array, forests: Sequence[Forest]) -> Float64Array:
    """Return the scores [n, c] that the other candidates get without the relevant ones, by each fold's trees."""
    others = pool.without(relevant)
    lists = lists_of(others, relevant)
    scores = np.full(others.rows.shape, -np.inf)
    for number, forest in enumerate(forests):
        scores[others.valid & (fold == number)[:, None]] = forest.scores(lists.part(fold == number).x)
    return scores
