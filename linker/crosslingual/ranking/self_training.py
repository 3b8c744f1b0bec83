"""Self-training: `auto` learns from its own surest links."""

from __future__ import annotations

import numpy as np

from indexes.dtypes import Int64Array
from linker.crosslingual.ranking.auto import Solution, relearn
from linker.crosslingual.ranking.fitting import FEWEST
from linker.crosslingual.ranking.learning import Evidence

SURE = 0.9  # least probability of a link that self-training learns from
ROUNDS = 3  # of self-training, at most


def self_train(
    evidence: Evidence, links: Int64Array, first: Solution, *, folds: int | None = None, seed: int = 0
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
        answer = relearn(evidence, links, extra, best.lists.rows, folds, seed)
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
