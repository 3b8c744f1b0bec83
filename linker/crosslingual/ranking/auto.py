"""The method `auto`: all available evidence, a ranker learned from links, probabilities, one-to-one competition.

It works with dictionaries, with links, and with both. Without enough links it uses a ranker that was pooled over
training pages of several language pairs (pooled.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import Float64Array, Int64Array
from linker.crosslingual.ranking.calibration import Platt, compete
from linker.crosslingual.ranking.features import Lists
from linker.crosslingual.ranking.fitting import FEWEST, learn_ranker
from linker.crosslingual.ranking.learning import Evidence, Fold, Learned, describe, list_size, out_of_fold
from linker.crosslingual.ranking.ranker import Ranker

CROSS_FITS = 3
NOTHING = np.empty((0, 2), np.int64)


@dataclass(frozen=True, eq=False)
class Solution:
    """The candidates of n unlinked pages, their probabilities, and the models that were learned.

    `probabilities` float64 [n, c + 1], the last column for "no link"; `quality`: the mean log likelihood of the known
    links out of fold, NaN with fewer than 20; `extra` int64 [e, 2]: links added by self-training.
    """

    lists: Lists
    probabilities: Float64Array
    learned: Learned
    ranker: Ranker
    platt: Platt
    quality: float
    extra: Int64Array

    def best(self) -> tuple[Int64Array, Int64Array, Float64Array]:
        """Return each page's row and most probable target (int64 [n]), and that probability (float64 [n])."""
        columns = self.probabilities[:, :-1].argmax(axis=1)
        n = np.arange(len(columns))
        return self.lists.rows, self.lists.targets[n, columns], self.probabilities[n, columns]


def solve(
    evidence: Evidence,
    links: Int64Array,
    *,
    folds: int | None = None,
    seed: int = 0,
    advance: Callable[[int], object] = lambda done: None,
) -> Solution:
    """Rank targets for every source page that is not in `links` (int64 [l, 2]), excluding the linked targets.

    `advance` is called with numbers of finished pages. Raises InputError where every target is linked, and where the
    evidence has no pooled ranker and there are fewer than 20 links.
    """
    unlinked = np.setdiff1d(np.arange(len(evidence.source)), links[:, 0])
    return relearn(evidence, links, NOTHING, unlinked, folds, seed, advance)


def relearn(
    evidence: Evidence,
    links: Int64Array,
    extra: Int64Array,
    unlinked: Int64Array,
    folds: int | None,
    seed: int,
    advance: Callable[[int], object] = lambda done: None,
) -> Solution:
    """Return the solution of the source rows `unlinked`, learned from `links` and from the pseudo-links `extra`."""
    parts: list[Fold] = []
    if len(links) >= FEWEST:
        parts = out_of_fold(evidence, links, unlinked, extra=extra, folds=folds, seed=seed, advance=advance)
    lists, learned = _describe_unlinked(evidence, links, extra, unlinked, seed, advance)
    start = evidence.start(len(links) + len(extra) > 0)
    model, logits, quality = learn_ranker(lists, parts, start)
    probabilities = compete(logits, lists.targets)
    return Solution(lists, model.platt(probabilities), learned, model.ranker, model.platt, quality, extra)


def _describe_unlinked(
    evidence: Evidence,
    links: Int64Array,
    extra: Int64Array,
    unlinked: Int64Array,
    seed: int,
    advance: Callable[[int], object],
) -> tuple[Lists, Learned]:
    """Describe the unlinked pages, each without what its own pseudo-link taught."""
    learned = evidence.learn(np.concatenate([links, extra]))
    taken, size = links[:, 1], list_size(evidence, links)
    if not len(extra):
        return describe(evidence, learned, unlinked, unlinked[:0], taken, size, advance), learned
    order = np.random.default_rng(seed).permutation(unlinked)
    parts = []
    for group in np.array_split(order, CROSS_FITS):
        others = np.concatenate([links, extra[~np.isin(extra[:, 0], group)]])
        rest = np.setdiff1d(unlinked, group)
        parts.append(describe(evidence, evidence.learn(others), np.sort(group), rest, taken, size, advance))
    rows = np.concatenate([p.rows for p in parts])
    back = np.argsort(rows, kind="stable")
    targets, features = (
        np.concatenate([getattr(p, name) for p in parts])[back] for name in ("targets", "features")
    )
    return Lists(rows[back], targets, features, parts[0].names), learned
