"""The cost of certainty: how many random documents certify which recall. Pure arithmetic, so known in advance."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linker.review.stopping.bounds import hypergeometric_tail, least, short_of
from linker.review.stopping.evidence import Bets
from linker.review.stopping.rule import LEAST_FOUND, Rule, number
from linker.review.wording import DOCUMENTS, Sentence, joined, say, say_many

EXPECTED = (15, 50, 100, 300)  # relevant documents assumed for the price before any find


@functools.lru_cache(maxsize=256)
def price(unread: int, found: int, target: float, *, alpha: float = 0.05) -> int:
    """Return how many of the `unread` documents, read at random without a find, certify the recall `target`.

    `found` relevant documents are known; the error is `alpha`, for one look at a sample of fixed size: a lower bound
    for any certificate without assumptions. 0 if so few are unread that the recall is already certain.
    """
    short = short_of(found, target)
    if short > unread:
        return 0
    below = alpha * (1 - 1e-9)  # as in `most_left`
    return least(lambda n: hypergeometric_tail(0, unread, short, n) <= below, 0, unread - short + 1)


def _priced(prices: Sequence[tuple[float, int]], what: str) -> Sentence:
    """Return the current cost of certainty, by target; `what` names the documents, in the plural."""
    told = [
        say_many(
            "%(num)s more document for a recall ≥ %(target)s",
            "%(num)s more documents for a recall ≥ %(target)s",
            count, target=number(target),
        ).about(what)
        for target, count in prices
    ]  # fmt: skip
    between = say(" and ")  # defined here, since nested messages are not extracted
    return say(
        "Certainty would cost %(prices)s, read at random, with none of them relevant.",
        prices=joined(told, between),
    )


def outlook(population: int, target: float, *, alpha: float = 0.05, what: str = DOCUMENTS) -> Sentence:
    """Return the cost of certainty, before reading begins, by the number of relevant documents."""
    certain = Bets(alpha, target).price
    parts = [
        say(
            "%(count)s (%(share)s of all) if %(found)s are found",
            count=count, share=count / population, found=found,
        )
        for found in EXPECTED
        if found < population and (count := certain(population - found, found, short_of(found, target)))
    ]  # fmt: skip
    if not parts:
        return say("With so few documents, read them all.").about(what)
    return say(
        "To certify a recall ≥ %(target)s, read more documents chosen at random: %(prices)s.",
        target=number(target), prices=joined(parts, ", "),
    ).about(what)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AuditOffer:
    """The offer of an audit: read `size` random documents, and the claim that follows if none of them is relevant.

    `left`: an upper bound on the relevant ones that are then unread; `recall`: the least share found, None if too few
    were found for a share. `price`: how many such documents certify the target recall.
    """

    size: int
    left: int
    recall: float | None
    price: int


def offer_of(rule: Rule[Any]) -> AuditOffer:
    """Return the offer of a rule's next audit."""
    unread, found, audit = rule.counts.unread, rule.counts.found, rule.audit
    needed = _price(rule, rule.target)
    size = min(needed if audit.until_certified else audit.size, unread)
    left = audit.evidence.most(unread, found, size, audit.total) - found
    return AuditOffer(size, left, found / (found + left) if found >= LEAST_FOUND else None, needed)


def _price(rule: Rule[Any], target: float) -> int:
    """Return how many further random reads without a find certify the target."""
    unread, found = rule.counts.unread, rule.counts.found
    if rule.left is not None and rule.left < short_of(found, target):
        return 0
    return rule.audit.evidence.price(unread, found, short_of(found, target))


def price_of(rule: Rule[Any], what: str = DOCUMENTS) -> Sentence:
    """Return the current cost of certainty in a review: the outlook, until enough was found for a price.

    Every random read so far counts, so an audit begun early costs less at the end.
    """
    unread, found = rule.counts.unread, rule.counts.found
    if not unread:
        return say("All documents were read.").about(what)
    if found < LEAST_FOUND:
        return outlook(rule.counts.population, rule.target, alpha=rule.options.alpha, what=what)
    targets = sorted({rule.target, 0.95}) if rule.target < 0.95 else [rule.target]
    return _priced([(target, _price(rule, target)) for target in targets], what)
