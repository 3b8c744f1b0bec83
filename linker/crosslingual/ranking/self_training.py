"""Self-training: `auto` learns words from its own surest links, and keeps what passes a test on held-out ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.crosslingual.ranking.auto import Solution, relearn
from linker.crosslingual.ranking.features import Lists
from linker.crosslingual.ranking.fitting import FEWEST
from linker.crosslingual.ranking.learning import Evidence

SURE = 0.7  # least probability of a link that self-training learns from; learning words forgives a few wrong ones
ROUNDS = 3  # of self-training, at most
LEARNED = "lsi.z"  # a score that only links teach


def self_train(
    evidence: Evidence,
    links: Int64Array,
    first: Solution,
    *,
    folds: int | None = None,
    seed: int = 0,
    expected: float | None = None,
) -> tuple[Solution, list[dict[str, Any]]]:
    """Return the solution improved by learning from its own sure links (pseudo-links), and a record of each round.

    This is transductive: the unlinked pages teach too. Each page is described without its own pseudo-link, so the
    pseudo-links are held out. A round is kept if what the others taught, taken alone, retrieves them better than before
    (`retrieval`), if it is sure of more pages, and if the known links (int64 [l, 2]), from 20 on, become more likely.
    """
    best, rounds = first, []
    for _ in range(ROUNDS):
        extra = sure(best)
        if len(extra) < FEWEST or len(np.intersect1d(extra[:, 0], best.extra[:, 0])) == len(extra):
            break
        answer = relearn(evidence, links, extra, best.lists.rows, folds, seed, expected)
        passed = {
            "retrieval": retrieval(answer.lists, extra) > retrieval(best.lists, extra),
            "sure_links": len(sure(answer)) > len(extra),
            "known_links": len(links) < FEWEST or answer.quality > best.quality,
        }
        rounds.append(
            {
                "learned_from": len(extra),
                "sure_links": len(sure(answer)),
                "retrieval": [round(retrieval(x.lists, extra), 4) for x in (best, answer)],
                "log_likelihood": answer.quality,
                "kept": all(passed.values()),
            }
        )
        if not all(passed.values()):
            break
        best = answer
    return best, rounds


def sure(answer: Solution) -> Int64Array:
    """Return the links of probability .7 or more, each target once: int64 [e, 2], source and target rows."""
    rows, targets, p = answer.best()
    order = np.argsort(-p, kind="stable")
    order = order[p[order] >= SURE]
    _, first = np.unique(targets[order], return_index=True)
    unique = order[np.sort(first)]
    return np.stack([rows[unique], targets[unique]], axis=1)


def retrieval(lists: Lists, held_out: Int64Array) -> float:
    """Return the mean reciprocal rank of the targets of `held_out` (int64 [e, 2]) by the score that only links teach.

    A target that is not among the candidates counts 0; equal scores share the mean of their ranks, so without the
    score the result is that of chance.
    """
    position = {row: i for i, row in enumerate(lists.rows.tolist())}
    rows = np.array([position[row] for row in held_out[:, 0].tolist()], np.int64)
    hit: BoolArray = lists.targets[rows] == held_out[:, 1:]
    scores = np.zeros(hit.shape, np.float32)
    if LEARNED in lists.names:
        scores = lists.features[rows, :, lists.names.index(LEARNED)]
    own = np.where(hit, scores, -np.inf).max(axis=1, keepdims=True)
    ranks: Float64Array = (scores > own).sum(axis=1) + ((scores == own).sum(axis=1) + 1) / 2
    return float(np.where(hit.any(axis=1), 1 / np.maximum(ranks, 1), 0).mean())
