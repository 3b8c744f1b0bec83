"""Deciding about all texts of a collection together: which competition the known links speak for, and P(link).

Without links nothing is known about how many texts a document takes, so nothing competes unless it is asked for. With
links, each kind of competition is tried on links that are held out, and one is chosen if it is ahead of none for sure:
prices that rise with the number of texts that want a document, or trees that learn what it means that they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.evaluation.first_ranks import mrr
from linker.evaluation.significance import bootstrap, fold_numbers
from linker.scoring.probability import logistic
from linker.scoring.probability.competition import (
    ANY,
    ONE,
    Capacity,
    Kind,
    Lists,
    compete,
    joined,
    softmax,
    spread,
)
from linker.scoring.probability.relations import related

ROUNDS = 40
FOLDS = 5
FEWEST = 40  # known links below which neither a competition nor probabilities are learned
SURE = 1e-6


@dataclass(frozen=True, eq=False)
class Known:
    """Texts whose links are known: their lists, which candidates are right (bool [n, c]), and all of their links.

    `links` int64 [l, 2]: rows of the lists, and documents, which need not be among the candidates. The lists' scores
    must come from rankers that did not learn from the same texts.
    """

    lists: Lists
    relevant: BoolArray
    links: Int64Array

    @property
    def capacity(self) -> Capacity:
        """How many texts a linked document has."""
        return capacity_of(self.links)


def capacity_of(links: Int64Array) -> Capacity:
    """Return how many texts the documents of `links` (int64 [l, 2]) have."""
    return Capacity.of(np.unique(links[:, 1], return_counts=True)[1])


@dataclass(frozen=True, eq=False)
class Choice:
    """The competition that was chosen, and each kind's lead in MRR over none, with its 95 % interval."""

    kind: Kind
    capacity: Capacity
    leads: Mapping[Kind, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Decision:
    """P(link) of each candidate (float64 [n, c]), P(none) of each text (float64 [n]), and how they came about.

    `held` and `right` [m]: P(link) of the first candidates of known links that were held out, and which are right.
    """

    links: Float64Array
    none: Float64Array
    choice: Choice
    held: Float64Array = field(default_factory=lambda: np.empty(0))
    right: BoolArray = field(default_factory=lambda: np.empty(0, bool))


def decide(lists: Lists, known: Known | None, kind: Kind | None = None, seed: int = 0) -> Decision:
    """Return P(link) of all texts' candidates, decided together; `kind` overrules what the known links say.

    The documents of known links are taken: how far, the capacity says.
    """
    if known is None or len(known.lists) < FEWEST:
        choice = Choice(kind or "none", ONE if kind == "one-to-one" else ANY)
        taken = known.links[:, 1] if known is not None else None
        return Decision(*_together(lists, choice, taken), choice)
    kinds: tuple[Kind, ...] = (kind,) if kind else ("none", "soft", "one-to-one")
    out = {one: held_out(known, lists, one, seed)[0] for one in kinds}
    learned = None if kind else related(known.lists, known.relevant, lists, seed)
    if learned:
        out["relations"] = _together(learned[0], Choice("relations", ANY), None)[0]
    choice = choose(
        {one: mrr(links, known.relevant, known.lists.documents >= 0) for one, links in out.items()},
        known.capacity,
        kind,
    )
    lists = learned[1] if learned and choice.kind == "relations" else lists
    links, none = _together(lists, choice, known.links[:, 1])
    return _calibrated(links, none, choice, out[choice.kind], known, seed)


def held_out(known: Known, others: Lists, kind: Kind, seed: int = 0) -> tuple[Float64Array, Float64Array]:
    """Return P(link) [n, c] and P(none) [n] of the known texts as if they were not known, one fold after the other.

    Each fold competes with the texts to link, while the links of the other folds are taken.
    """
    count, width = known.lists.documents.shape
    fold = fold_numbers(count, FOLDS, seed)
    links, none = np.zeros((count, width)), np.zeros(count)
    for number in range(FOLDS):
        here = fold == number
        rest = known.links[~here[known.links[:, 0]]]
        both = joined(known.lists.at(here), others)
        choice = Choice(kind, _capacity(kind, capacity_of(rest)))
        found, found_none = _together(both, choice, rest[:, 1])
        links[here] = found[: int(here.sum()), :width]
        none[here] = found_none[: int(here.sum())]
    return links, none


def choose(reciprocal: Mapping[Kind, Float64Array], capacity: Capacity, asked: Kind | None = None) -> Choice:
    """Return the competition with the highest mean of the held-out `reciprocal` ranks [n], or the one `asked` for.

    It must be ahead of none by more than its 95 % interval.
    """
    if asked:
        return Choice(asked, _capacity(asked, capacity))
    leads: dict[Kind, tuple[float, float, float]] = {}
    for kind in (kind for kind in reciprocal if kind != "none"):
        lead = reciprocal[kind] - reciprocal["none"]
        leads[kind] = (float(lead.mean()), *bootstrap(lead))
    ahead = [kind for kind in leads if leads[kind][1] > 0]
    best: Kind = max(ahead, key=lambda kind: leads[kind][0], default="none")
    return Choice(best, _capacity(best, capacity), leads)


def _capacity(kind: Kind, learned: Capacity) -> Capacity:
    return {"none": ANY, "relations": ANY, "soft": learned, "one-to-one": ONE}[kind]


def _together(lists: Lists, choice: Choice, taken: Int64Array | None) -> tuple[Float64Array, Float64Array]:
    """Return P(link) [n, c] and P(none) [n] of texts that compete; without a competition, each as it is alone."""
    here = 1 - lists.none[:, None]
    if choice.capacity == ANY:
        shares = softmax(np.where(np.isfinite(lists.scores), lists.scores, -1e300))
        return np.where(np.isfinite(lists.scores), shares, 0) * here, lists.none
    links = here * compete(lists.logits(), lists.documents, choice.capacity, taken, ROUNDS)[:, :-1]
    return links, 1 - links.sum(axis=1)


def _calibrated(
    links: Float64Array, none: Float64Array, choice: Choice, held: Float64Array, known: Known, seed: int
) -> Decision:
    """Return the decision with P(link) of first candidates as often right as those of held-out links (Platt, 1999).

    The other candidates keep their odds to the first as far as the sum of all allows. Each half of the held-out links
    is judged by what the other half taught.
    """
    first, right = held.max(axis=1), mrr(held, known.relevant, known.lists.documents >= 0) == 1
    half = fold_numbers(len(first), 2, seed) == 0
    said = np.zeros(len(first))
    for part in (half, ~half):
        said[part] = _platt(first[part], _fitted(first[~part], right[~part]))
    weights = _fitted(first, right)
    best = links.max(axis=1)
    won = np.concatenate([links, none[:, None]], axis=1)
    won = spread(won, np.where(best > 0, _platt(best, weights), 0))
    return Decision(won[:, :-1], won[:, -1], choice, said, right)


def _fitted(first: Float64Array, right: BoolArray) -> Float64Array:
    return logistic.fit(_odds(first), right, prior=np.array([1.0, 0.0]))


def _platt(first: Float64Array, weights: Float64Array) -> Float64Array:
    from scipy.special import expit

    return np.asarray(expit(_odds(first) @ weights[:-1] + weights[-1]))


def _odds(p: Float64Array) -> Float64Array:
    p = np.clip(p, SURE, 1 - SURE)
    return np.asarray(np.log(p / (1 - p))[:, None])
