"""Self-training: `auto` learns words from its own most certain links, if a test on held-out links shows a gain."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.crosslingual.ranking.auto import Solution, relearn
from linker.crosslingual.ranking.evidence import AllEvidence
from linker.scoring.ranking.fitting import FEWEST
from linker.scoring.ranking.lists import CandidateLists, Chances

SURE = 0.7  # minimum probability of a link used in self-training; learning words tolerates a few wrong links
ALONE = 0.5  # the same if nothing is given: the probabilities are too low then
ROUNDS = 3  # maximum number of rounds of self-training
BETTER = 2.0  # standard errors by which the first round must improve retrieval
WORSE = 1.0  # standard errors by which a later round may lower it
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
    pages. Each page is described without its own pseudo-link, so the pseudo-links are held out. The first round is kept
    if a score learned only from links ranks their targets higher than before (`retrieval`), by more than two standard
    errors; a later one, unless it ranks those of the round before lower, by more than one. The result is the average of
    the rounds. `links`: the known links, int64 [l, 2].
    """
    best, rounds, solutions = first, [], []
    for _ in range(ROUNDS):
        extra = sure(best, least)
        if len(extra) < FEWEST or len(np.intersect1d(extra[:, 0], best.extra[:, 0])) == len(extra):
            break
        answer = relearn(evidence, links, extra, best.lists.rows, seed, expected)
        later = len(best.extra) > 0
        # Wrong new pseudo-links would be retrieved as badly as before; those of the round before worse.
        held_out = best.extra if later else extra
        before, after = (retrieval(x.lists, held_out) for x in (best, answer))
        kept = _gains(before, after, -WORSE if later else BETTER)
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
        solutions.append(answer)
    return average(solutions) if len(solutions) > 1 else best, rounds


def sure(answer: Solution, least: float = SURE) -> Int64Array:
    """Return the links of probability `least` or more, each target once: int64 [e, 2], source and target rows."""
    rows, targets, p = answer.best()
    order = np.argsort(-p, kind="stable")
    order = order[p[order] >= least]
    _, first = np.unique(targets[order], return_index=True)
    unique = order[np.sort(first)]
    return np.stack([rows[unique], targets[unique]], axis=1)


def _gains(before: Float64Array, after: Float64Array, errors: float) -> bool:
    gain = after - before
    return bool(gain.mean() > errors * gain.std() / np.sqrt(len(gain)))


def average(solutions: Sequence[Solution]) -> Solution:
    """Return the last solution with the geometric mean of the probabilities that all solutions give its candidates.

    Those of the known links out of fold are averaged too, so that a promise holds for what is returned.
    """

    def mean(chances: Sequence[Chances]) -> Chances:
        return chances[-1].averaged(chances[:-1])

    fitted = solutions[-1].fitted
    held_out = [each.fitted.held_out for each in solutions if each.fitted.held_out]
    if len(held_out) == len(solutions):
        linked, alone = (mean(group) for group in zip(*held_out, strict=True))
        fitted = replace(fitted, held_out=(linked, alone))
    probabilities = mean([each.chances for each in solutions]).probabilities
    return replace(solutions[-1], fitted=replace(fitted, probabilities=probabilities))


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
