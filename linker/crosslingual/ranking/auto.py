"""`auto`: every kind of evidence at hand, a ranker learned from the links, probabilities, one target for one page.

Works with dictionaries alone (the ranker is then one pooled over training pages of three language pairs:
pooled.py), with links alone, and with both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from indexes.dtypes import Float64Array, Int64Array
from linker.crosslingual.ranking.calibration import Platt, compete, fit_platt, temperature
from linker.crosslingual.ranking.features import Lists
from linker.crosslingual.ranking.learning import Evidence, Fold, Learned, describe, list_size, out_of_fold
from linker.crosslingual.ranking.pooled import Pooled
from linker.crosslingual.ranking.ranker import Ranker, fit_ranker
from linker.errors import InputError

FEWEST = 20  # links from which a ranker of one's own is learned
SURE = 0.9  # probability of a link that self-training learns from
ROUNDS = 3  # of self-training at most
CROSS_FITS = 3
NOTHING = np.empty((0, 2), np.int64)


@dataclass(frozen=True, eq=False)
class Solution:
    """The unlinked pages' candidates with probabilities [n, c + 1] (last: no link), and what was learned.

    `quality`: the mean log likelihood of the known links out of fold; NaN without links.
    """

    lists: Lists
    probabilities: Float64Array
    learned: Learned
    ranker: Ranker
    platt: Platt
    quality: float
    extra: Int64Array

    def best(self) -> tuple[Int64Array, Int64Array, Float64Array]:
        """Return each page's row, its most probable target and that probability."""
        at = self.probabilities[:, :-1].argmax(axis=1)
        n = np.arange(len(at))
        return self.lists.rows, self.lists.targets[n, at], self.probabilities[n, at]


def solve(
    evidence: Evidence,
    links: Int64Array,
    *,
    folds: int = 5,
    seed: int = 0,
    advance: Callable[[int], object] = lambda done: None,
) -> Solution:
    """Answer every source page that is not in `links` (int64 [n, 2], source and target rows); those targets are out."""
    unlinked = np.setdiff1d(np.arange(len(evidence.source)), links[:, 0])
    return _solve(evidence, links, NOTHING, unlinked, folds, seed, advance)


def self_train(
    evidence: Evidence, links: Int64Array, first: Solution, *, folds: int = 5, seed: int = 0
) -> tuple[Solution, list[dict[str, float]]]:
    """Learn on from the answers that are sure and mutual, while that makes the known links more likely.

    Transductive: the pages that are asked about teach too. Without known links it goes on while the number of sure
    answers grows. Returns the best answer and a record of the rounds.
    """
    best, rounds = first, []
    for _ in range(ROUNDS):
        extra = sure(best)
        if len(extra) <= len(best.extra):
            break
        answer = _solve(evidence, links, extra, best.lists.rows, folds, seed)
        better = answer.quality > best.quality if len(links) >= FEWEST else len(sure(answer)) > len(extra)
        rounds.append({"learned_from": len(extra), "log_likelihood": answer.quality, "kept": float(better)})
        if not better:
            break
        best = answer
    return best, rounds


def sure(answer: Solution) -> Int64Array:
    """Return the links that are nearly certain, no target twice: int64 [n, 2]."""
    rows, targets, p = answer.best()
    order = np.argsort(-p, kind="stable")
    order = order[p[order] >= SURE]
    _, first = np.unique(targets[order], return_index=True)
    kept = order[np.sort(first)]
    return np.stack([rows[kept], targets[kept]], axis=1)


def _solve(
    evidence: Evidence,
    links: Int64Array,
    extra: Int64Array,
    unlinked: Int64Array,
    folds: int,
    seed: int,
    advance: Callable[[int], object] = lambda done: None,
) -> Solution:
    parts: list[Fold] = []
    if len(links) >= FEWEST:
        parts = out_of_fold(evidence, links, unlinked, extra=extra, folds=folds, seed=seed, advance=advance)
    lists, learned = _describe_unlinked(evidence, links, extra, unlinked, seed, advance)
    start = evidence.start(len(links) + len(extra) > 0)
    model, logits, quality = learn_ranker(lists, parts, start)
    probabilities = compete(logits, lists.targets)
    return Solution(lists, model.platt(probabilities), learned, model.ranker, model.platt, quality, extra)


def learn_ranker(lists: Lists, parts: list[Fold], start: Pooled | None) -> tuple[Pooled, Float64Array, float]:
    """Return the ranker with its calibration, the logits [n, c + 1] of `lists`, and the quality out of fold."""
    if not parts and start is None:
        raise InputError(
            f"this method learns its ranker from linked pages: give at least {FEWEST} (--train QRELS)"
        )
    if not parts and start is not None:
        return start, start.ranker.logits(aligned(lists, start.ranker.names)), float("nan")
    names, prior = lists.names, start.ranker if start else None
    everything = np.concatenate([p.lists.features for p in parts])
    right = np.concatenate([p.right for p in parts])
    ranker = fit_ranker(names, everything, right, prior=prior)
    held = []
    for part in parts:
        rest = [p for p in parts if p is not part]
        own = fit_ranker(
            names,
            np.concatenate([p.lists.features for p in rest]),
            np.concatenate([p.right for p in rest]),
            prior=prior,
        )
        held.append(own.logits(part.lists.features))
    t = temperature(np.concatenate(held), right)
    ranker = replace(ranker, temperature=t)
    logits = ranker.logits(lists.features)
    won = np.concatenate(
        [_after_competition(h / t, p.lists, logits, lists) for h, p in zip(held, parts, strict=True)]
    )
    top = won[:, :-1].argmax(axis=1)
    confidence = won[np.arange(len(won)), top]
    chosen = won[np.arange(len(won)), np.where(right >= 0, right, won.shape[1] - 1)]
    quality = float(np.log(chosen + 1e-6).mean())
    return Pooled(ranker, fit_platt(confidence, top == right)), logits, quality


def aligned(lists: Lists, names: tuple[str, ...]) -> npt.NDArray[np.float32]:
    """Return the features that a ranker knows, in its order; one that is missing here is 0."""
    position = {name: i for i, name in enumerate(lists.names)}
    n, c, _ = lists.features.shape
    columns = [
        lists.features[:, :, position[x]] if x in position else np.zeros((n, c), np.float32) for x in names
    ]
    return np.stack(columns, axis=2)


def _after_competition(held: Float64Array, part: Lists, logits: Float64Array, lists: Lists) -> Float64Array:
    """Probabilities of left-out pages when the unlinked pages compete for the same targets."""
    both = compete(np.concatenate([held, logits]), np.concatenate([part.targets, lists.targets]))
    return both[: len(held)]


def _describe_unlinked(
    evidence: Evidence,
    links: Int64Array,
    extra: Int64Array,
    unlinked: Int64Array,
    seed: int,
    advance: Callable[[int], object],
) -> tuple[Lists, Learned]:
    """Describe the unlinked pages; none is described by what its own pseudo-link taught."""
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
