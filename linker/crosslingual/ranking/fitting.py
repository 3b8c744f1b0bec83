"""Fitting a calibrated ranker on lists of linked pages that were described out of fold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from indexes.dtypes import Float64Array
from linker.crosslingual.ranking.calibration import compete, fit_platt, temperature
from linker.crosslingual.ranking.features import Lists
from linker.crosslingual.ranking.learning import Fold
from linker.crosslingual.ranking.pooled import Pooled
from linker.crosslingual.ranking.ranker import fit_ranker
from linker.errors import InputError

FEWEST = 20  # links; with fewer, no ranker is learned


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
