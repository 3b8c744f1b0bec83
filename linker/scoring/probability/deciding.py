"""Decides about all texts of a collection together: the best kind of competition for the known links, and P(link).

Without links, it is unknown how many texts a document accepts, so there is no competition unless requested. With
links, each kind of competition is tried on held-out links, and chosen if it is significantly better than no
competition: prices that rise with the number of texts that want a document, or trees that learn from this demand.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from linker.evaluation.first_ranks import mrr
from linker.evaluation.significance import bootstrap, fold_numbers
from linker.scoring.probability.competition import (
    ANY,
    ONE,
    Capacity,
    Kind,
    Lists,
    compete,
    join,
    softmax,
    spread,
)
from linker.scoring.probability.relations import relate
from linker.scoring.probability.verification import ThreeWay
from linker.scoring.ranking.fitting import Held

Won = tuple[Float64Array, Float64Array]  # P(link) of candidates [n, c] and P(none) [n]
ROUNDS = 40
FOLDS = 5
SEEN = ("first", "some")  # log odds that the first candidate is the link, and that any candidate is
FEWEST = 40  # minimum number of known links to learn a competition or probabilities
SURE = 1e-6


@dataclass(frozen=True, eq=False)
class Known:
    """Texts with known links: their lists, which candidates are right (bool [n, c]), and all of their links.

    `links` int64 [l, 2]: rows of the lists, and documents, which need not be candidates. The lists' scores must come
    from rankers that did not learn from the same texts. `absent`: the same lists without the right ones.
    """

    lists: Lists
    relevant: BoolArray
    links: Int64Array
    absent: Lists

    @property
    def capacity(self) -> Capacity:
        """How many texts a linked document has."""
        return capacity_of(self.links)


def capacity_of(links: Int64Array) -> Capacity:
    """Return how many texts the documents of `links` (int64 [l, 2]) have."""
    return Capacity.of(np.unique(links[:, 1], return_counts=True)[1])


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen competition, and each kind's lead in MRR over no competition, with its 95 % interval."""

    kind: Kind
    capacity: Capacity
    leads: Mapping[Kind, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Decision:
    """P(link) of each candidate (float64 [n, c]), P(none) of each text (float64 [n]), and how they were obtained.

    `share` of the texts have a link. `held` and `right` [m]: P(link) of the first candidates of held-out known links,
    and whether they are right. The right documents were removed from some of these lists, to match the share of
    texts without a link.
    """

    links: Float64Array
    none: Float64Array
    choice: Choice
    share: float | None = None
    held: Float64Array = field(default_factory=lambda: np.empty(0))
    right: BoolArray = field(default_factory=lambda: np.empty(0, bool))


def decide(
    lists: Lists, known: Known | None, kind: Kind | None = None, seed: int = 0, expected: float | None = None
) -> Decision:
    """Return P(link) of all texts' candidates, decided together.

    `kind` is the kind of competition; by default, the known links decide which is used. Their documents count as taken,
    as far as the capacity of a document allows. `expected`: the share of the texts that have a link, if it is known.
    """
    if known is None or len(known.lists) < FEWEST:
        choice = Choice(kind or "none", ONE if kind == "one-to-one" else ANY)
        taken = known.links[:, 1] if known is not None else None
        return Decision(*_together(lists, choice, taken), choice)
    kinds: tuple[Kind, ...] = (kind,) if kind else ("none", "soft", "one-to-one")
    out = {one: held_out(known, lists, one, seed) for one in kinds}
    learned = None if kind else relate(known.lists, known.absent, known.relevant, lists, seed)
    if learned:
        out["relations"] = _together(learned[0], Choice("relations", ANY), None)
    choice = choose(
        {one: mrr(links, known.relevant, known.lists.documents >= 0) for one, (links, _) in out.items()},
        known.capacity,
        kind,
    )
    if learned and choice.kind == "relations":
        lists = learned[2]
        absent = _together(learned[1], choice, None)
    else:
        absent = held_out(replace(known, lists=known.absent), lists, choice.kind, seed)
    won = _together(lists, choice, known.links[:, 1])
    return _calibrate(won, out[choice.kind], absent, known, choice, seed, expected)


def held_out(known: Known, others: Lists, kind: Kind, seed: int = 0) -> tuple[Float64Array, Float64Array]:
    """Return P(link) [n, c] and P(none) [n] of the known texts as if their links were unknown, fold by fold.

    Each fold competes with the texts to link, while the links of the other folds are taken.
    """
    count, width = known.lists.documents.shape
    fold = fold_numbers(count, FOLDS, seed)
    links, none = np.zeros((count, width)), np.zeros(count)
    for number in range(FOLDS):
        mask = fold == number
        rest = known.links[~mask[known.links[:, 0]]]
        both = join(known.lists.at(mask), others)
        choice = Choice(kind, _capacity(kind, capacity_of(rest)))
        found, found_none = _together(both, choice, rest[:, 1])
        links[mask] = found[: int(mask.sum()), :width]
        none[mask] = found_none[: int(mask.sum())]
    return links, none


def choose(reciprocal: Mapping[Kind, Float64Array], capacity: Capacity, asked: Kind | None = None) -> Choice:
    """Return the competition with the highest mean held-out `reciprocal` rank [n], or the one `asked` for.

    A competition is chosen only if the 95 % interval of its lead over "none" is above 0.
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
    """Return P(link) [n, c] and P(none) [n] of texts that compete or, without a competition, of each text alone."""
    linked = 1 - lists.none[:, None]
    if choice.capacity == ANY:
        shares = softmax(np.where(np.isfinite(lists.scores), lists.scores, -1e300))
        return np.where(np.isfinite(lists.scores), shares, 0) * linked, lists.none
    links = linked * compete(lists.logits(), lists.documents, choice.capacity, taken, ROUNDS)[:, :-1]
    return links, 1 - links.sum(axis=1)


def _calibrate(
    won: Won, held: Won, absent: Won, known: Known, choice: Choice, seed: int, share: float | None
) -> Decision:
    """Return the decision, with P(link) of first candidates fitted to how often those of held-out links are right.

    The lists of `held` contain the right documents; those of `absent` do not, so that P(link) learns from them what no
    link looks like. The share of the texts that have a link is estimated unless it is given. The other candidates keep
    their odds relative to the first, as far as the total probability allows. Each part of the held-out links is judged
    by a model fitted to the others.
    """
    right = mrr(held[0], known.relevant, known.lists.documents >= 0) == 1
    x, linked, unlinked = (_features_of(*one) for one in (won, held, absent))
    verifier = ThreeWay.fitted(SEEN, linked, right, unlinked)
    if share is None:
        share = verifier.share(x)
    fold, p = fold_numbers(len(right), FOLDS, seed), np.zeros((2, len(right)))
    for mask in (fold == number for number in range(FOLDS)):
        check = ThreeWay.fitted(SEEN, linked[~mask], right[~mask], unlinked[~mask])
        p[:, mask] = check(linked[mask], share), check(unlinked[mask], share)
    best = won[0].max(axis=1, initial=0)
    both = np.concatenate([won[0], won[1][:, None]], axis=1)
    both = spread(both, np.where(best > 0, verifier(x, share), 0))
    return Decision(both[:, :-1], both[:, -1], choice, share, *Held(p[0], right, p[1]).mixture(share, seed))


def _features_of(links: Float64Array, none: Float64Array) -> Float64Array:
    """Return the features SEEN, float64 [n, 2], of texts, from P(link) of their candidates [n, c] and P(none) [n]."""
    return np.concatenate([_odds(links.max(axis=1, initial=0)), -_odds(none)], axis=1)


def _odds(p: Float64Array) -> Float64Array:
    p = np.clip(p, SURE, 1 - SURE)
    return np.asarray(np.log(p / (1 - p))[:, None])
