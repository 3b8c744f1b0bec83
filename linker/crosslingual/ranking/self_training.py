"""Self-training: `auto` learns words from its own most certain links, if a test on held-out links shows a gain."""

from typing import Any

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.crosslingual.ranking.auto import Solution, relearn
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.scoring.ranking.fitting import FEWEST
from linker.scoring.ranking.lists import CandidateLists

SURE = 0.7  # minimum probability of a link used in self-training; learning words tolerates a few wrong links
ALONE = 0.5  # the same if nothing is given: the probabilities are too low then
ROUNDS = 3  # maximum number of rounds of self-training
ERRORS = 2.0  # standard errors by which retrieval must improve
LEARNED = "lsi.z"  # a score learned only from links


def self_train(
    evidence: AllEvidence,
    links: Int64Array,
    first: Solution,
    *,
    seed: int = 0,
    expected: float | None = None,
    least: float = SURE,
) -> tuple[Solution, list[dict[str, Any]]]:
    """Return the solution improved by learning from its own surest links (pseudo-links), and a record of each round.

    Pseudo-links are links of probability `least` or more. This is transductive: it also learns from the unlinked
    pages. Each page is described without its own pseudo-link, so the pseudo-links are held out. A round is kept if a
    score learned only from links ranks their targets higher than before (`retrieval`), by more than two standard
    errors, and the known links (int64 [l, 2]) become more likely; fewer than 20 known links are not considered.
    """
    best, rounds = first, []
    for _ in range(ROUNDS):
        extra = sure(best, least)
        if len(extra) < FEWEST or len(np.intersect1d(extra[:, 0], best.extra[:, 0])) == len(extra):
            break
        answer = relearn(evidence, links, extra, best.lists.rows, seed, expected)
        before, after = (retrieval(x.lists, extra) for x in (best, answer))
        likelier = len(links) < FEWEST or answer.quality > best.quality
        kept = likelier and _clearly_better(after, before)
        rounds.append(
            {
                "learned_from": len(extra),
                "sure_links": len(sure(answer, least)),
                "retrieval": [round(float(x.mean()), 4) for x in (before, after)],
                "log_likelihood": answer.quality,
                "kept": kept,
            }
        )
        if not kept:
            break
        best = answer
    return best, rounds


def sure(answer: Solution, least: float = SURE) -> Int64Array:
    """Return the links of probability `least` or more, each target once: int64 [e, 2], source and target rows."""
    rows, targets, p = answer.best()
    order = np.argsort(-p, kind="stable")
    order = order[p[order] >= least]
    _, first = np.unique(targets[order], return_index=True)
    unique = order[np.sort(first)]
    return np.stack([rows[unique], targets[unique]], axis=1)


def _clearly_better(after: Float64Array, before: Float64Array) -> bool:
    gain = after - before
    return bool(gain.mean() > ERRORS * gain.std() / np.sqrt(len(gain)))


def retrieval(lists: CandidateLists, held_out: Int64Array) -> Float64Array:
    """Return the reciprocal ranks [e] of the targets of `held_out` (int64 [e, 2]) by a score learned from links.

    A target that is not among the candidates has 0; equal scores are in random order, so without the score the result
    is at chance level.
    """
    position = {row: i for i, row in enumerate(lists.rows.tolist())}
    rows = np.array([position[row] for row in held_out[:, 0].tolist()], np.int64)
    hit: BoolArray = lists.targets[rows] == held_out[:, 1:]
    scores = np.zeros(hit.shape, np.float32)
    if LEARNED in lists.names:
        scores = lists.features[rows, :, lists.names.index(LEARNED)]
    own = np.where(hit, scores, -np.inf).max(axis=1, keepdims=True)
    above, equal = (scores > own).sum(axis=1), np.maximum((scores == own).sum(axis=1), 1)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, hit.shape[1] + 2))])
    expected = (harmonic[above + equal] - harmonic[above]) / equal
    return np.asarray(np.where(hit.any(axis=1), expected, 0))
