"""How many targets a page may have, and how many pages a target may have: which candidates become links."""

import numpy as np
from scipy.special import expit

from indexes.dtypes import Float32Array, Float64Array
from linker.base.errors import InputError
from linker.crosslingual.options import LEARN, Cardinality
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.ranking.auto import Solution
from linker.crosslingual.scoring.assignment import one_to_one
from linker.crosslingual.scoring.candidates import DECIMALS, Candidates, hashes, rank, tie_breaks
from linker.crosslingual.task import Task
from linker.scoring.ranking.lists import align


def cardinality_of(task: Task, method: str) -> Cardinality:
    """Return how many partners pages may have, by options or method. Raises InputError if they contradict."""
    asked, learns = task.options.links, method in LEARN
    if method in ("hapax", "pivot") and asked not in (None, "one-to-one"):
        raise InputError(f"the method {method!r} matches pages one to one: `links` {asked} does not apply")
    if asked and lists_several(asked):
        if not learns:
            raise InputError(f"`links` {asked} needs probabilities: choose the method auto or cascade")
        if not task.options.min_probability and task.options.precision is None:
            raise InputError(f"`links` {asked} lists all sufficiently probable links: give `min_probability`")
    if asked is None:
        return "one-to-one" if learns or method in ("hapax", "pivot") else "many-to-one"
    return asked


def lists_several(cardinality: Cardinality) -> bool:
    """Return whether a page may have several targets."""
    return cardinality in ("one-to-many", "many-to-many")


def chances(answer: Solution, cardinality: Cardinality) -> Float64Array:
    """Return the probabilities of the candidates of n pages, float64 [n, c].

    If a page has at most one counterpart, they are the probabilities that the candidate is the counterpart, and sum to
    at most one. If it may have several, each candidate is compared only with "no link", as if there were no others: the
    ranker learned from lists without the page's other targets, and from lists without any target. The results are
    scaled so that the best candidate gets the probability that the page has a counterpart at all.
    """
    if not lists_several(cardinality):
        return np.asarray(answer.probabilities[:, :-1])
    lists, ranker = answer.lists, answer.fitted.model.ranker
    logits = ranker.logits(align(lists, ranker.names, ranker.centre))
    alone = expit(logits[:, :-1] - logits[:, -1:])
    return np.asarray((1 - answer.probabilities[:, -1:]) * alone / alone.max(axis=1, keepdims=True))


def choose_links(
    ranking: Candidates, cardinality: Cardinality, source: Pages, target: Pages
) -> tuple[Candidates, Float32Array]:
    """Return the candidates [n, k] that may be links, and the score of each page's first candidate, float32 [n]."""
    if cardinality == "one-to-one":
        return one_to_one(ranking, source.keys, target.keys)
    candidates = _each_target_once(ranking, source, target) if cardinality == "one-to-many" else ranking
    return candidates, np.maximum(candidates.scores[:, 0], 0)


def _each_target_once(ranking: Candidates, source: Pages, target: Pages) -> Candidates:
    """Return the candidates, with each target only at its best page; ties are broken by a hash of the contents."""
    rows, columns, scores = ranking.pairs()
    names = hashes(source.keys), hashes(target.keys)
    ties = tie_breaks(names[0][rows], names[1][columns])
    order = np.lexsort((ties, -np.round(scores.astype(np.float64), DECIMALS)))
    _, first = np.unique(columns[order], return_index=True)
    best = order[first]
    return rank(rows[best], columns[best], scores[best], len(source), ranking.targets.shape[1], *names)
