"""The method `auto`: all available evidence, a ranker learned from links, probabilities, one-to-one competition.

It works with dictionaries, with links, and with both. Without enough links it uses a ranker that was pooled over
training pages of several language pairs (pooled.py).
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

FEWEST = 20  # links; with fewer, no ranker is learned
SURE = 0.9  # least probability of a link that self-training learns from
ROUNDS = 3  # of self-training, at most
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
    folds: int = 5,
    seed: int = 0,
    advance: Callable[[int], object] = lambda done: None,
) -> Solution:
    """Rank targets for every source page that is not in `links` (int64 [l, 2]), excluding the linked targets.

    `advance` is called with numbers of finished pages. Raises InputError where every target is linked, and where the
    evidence has no pooled ranker and there are fewer than 20 links.
    """
    unlinked = np.setdiff1d(np.arange(len(evidence.source)), links[:, 0])
    return _solve(evidence, links, NOTHING, unlinked, folds, seed, advance)


def self_train(
    evidence: Evidence, links: Int64Array, first: Solution, *, folds: int = 5, seed: int = 0
) -> tuple[Solution, list[dict[str, float]]]:
    """Return the solution improved by learning from its own sure links, and a record of each round.

    This is transductive: the unlinked pages teach too. It continues while the known links (int64 [l, 2]) become more
    likely or, with fewer than 20 of them, while the number of sure links grows.
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
    """Return the links of probability .9 or more, each target once: int64 [e, 2], source and target rows."""
    rows, targets, p = answer.best()
    order = np.argsort(-p, kind="stable")
    order = order[p[order] >= SURE]
    _, first = np.unique(targets[order], return_index=True)
    unique = order[np.sort(first)]
    return np.stack([rows[unique], targets[unique]], axis=1)


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
    """Return a calibrated ranker, the logits of `lists` (float64 [n, c + 1]), and its quality out of fold.

    Without `parts`, `start` is returned as it is, with a quality of NaN. Raises InputError where both are missing.
    """
    if not parts and start is None:
        raise InputError(
            f"this method learns its ranker from linked pages: pass at least {FEWEST} (--train QRELS)"
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
        fold_ranker = fit_ranker(
            names,
            np.concatenate([p.lists.features for p in rest]),
            np.concatenate([p.right for p in rest]),
            prior=prior,
        )
        held.append(fold_ranker.logits(part.lists.features))
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
    """Return the features `names` of the lists, in this order, missing ones as 0: float32 [n, c, names]."""
    position = {name: i for i, name in enumerate(lists.names)}
    n, c, _ = lists.features.shape
    columns = [
        lists.features[:, :, position[x]] if x in position else np.zeros((n, c), np.float32) for x in names
    ]
    return np.stack(columns, axis=2)


def _after_competition(held: Float64Array, part: Lists, logits: Float64Array, lists: Lists) -> Float64Array:
    """Return the held-out pages' probabilities after the unlinked pages have competed for the same targets."""
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
