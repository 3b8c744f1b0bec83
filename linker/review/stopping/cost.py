"""The cost of certainty: how many random documents have to be read to certify a recall, computed beforehand."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from linker.review.stopping.bounds import hypergeometric_tail, least, short_of
from linker.review.stopping.evidence import Bets, front_reads
from linker.review.stopping.rule import LEAST_FOUND, Rule, percent
from linker.review.wording import DOCUMENTS, Sentence, joined, say, say_many

EXPECTED = (15, 50, 100, 300)  # numbers of relevant documents for which `outlook` states the cost


@functools.lru_cache(maxsize=256)
def price(unread: int, found: int, target: float, *, alpha: float = 0.05) -> int:
    """Return how many of the `unread` documents have to be read at random, without a find, to certify a recall.

    `target`: the recall; `found`: the number of relevant documents known; `alpha`: the allowed error. The sample has a
    fixed size and is examined once, so no certificate without assumptions needs fewer. 0 if so few documents are unread
    that the recall is already certain.
    """
    short = short_of(found, target)
    if short > unread:
        return 0
    below = alpha * (1 - 1e-9)  # for the same reason as in `most_left`
    return least(lambda n: hypergeometric_tail(0, unread, short, n) <= below, 0, unread - short + 1)


def _price_sentence(prices: Sequence[tuple[float, int]], what: str, *, by_order: bool) -> Sentence:
    """Return a sentence on the current cost of a certificate for each target; `what` names the documents (plural)."""
    parts = [
        say_many(
            "%(num)s more document for a recall ≥ %(target)s",
            "%(num)s more documents for a recall ≥ %(target)s",
            count, target=percent(target),
        ).about(what)
        for target, count in prices
    ]  # fmt: skip
    between = say(" and ")  # defined here, since nested messages are not extracted
    if by_order:
        return say(
            "A certificate by the order would cost %(prices)s, half of them from the first twentieth of the unread, "
            "which would have to hold at least half of the relevant ones left.",
            prices=joined(parts, between),
        )
    return say(
        "Certainty would cost %(prices)s, read at random, with none of them relevant.",
        prices=joined(parts, between),
    )


def outlook(
    population: int, target: float, *, alpha: float = 0.05, what: str = DOCUMENTS, by_order: bool = False
) -> Sentence:
    """Return a sentence that says, before reading begins, what certainty will cost for several numbers of finds.

    by_order: the cost of the certificate by order (see `OrderCertificate`) instead.
    """
    certain = Bets(alpha, target, by_order=by_order).price
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
    if by_order:
        return say(
            "To certify it by the order, which assumes that the first twentieth of the unread holds at least half of "
            "the relevant ones left: %(prices)s.",
            prices=joined(parts, ", "),
        ).about(what)
    return say(
        "To certify a recall ≥ %(target)s, read more documents chosen at random: %(prices)s.",
        target=percent(target), prices=joined(parts, ", "),
    ).about(what)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AuditOffer:
    """The offer of an audit: read `size` random documents, and the claim that follows if none of them is relevant.

    `left`: an upper bound on the relevant documents that are then unread; `recall`: a lower bound on the share found,
    None if too few were found. `price`: how many such documents, drawn from all unread ones, certify the target recall.
    `by_order`, `order_price`: recall and price of the certificate by order, None if the audit does not use the order.
    """

    size: int
    left: int
    recall: float | None
    price: int
    by_order: float | None = None
    order_price: int | None = None


def offer_of(rule: Rule[Any]) -> AuditOffer:
    """Return the offer of a rule's next audit."""
    unread, found, audit = rule.counts.unread, rule.counts.found, rule.audit
    needed = _price(rule, rule.target)
    cheap = _price(rule, rule.target, by_order=True) if audit.by_order else None
    size = min(audit.size, unread)
    front = front_reads(size) if audit.by_order else 0
    bound = min(audit.evidence.most(unread, found, size - front, audit.total) - found, unread - size)
    if found < LEAST_FOUND:
        return AuditOffer(size, bound, None, needed)
    recall = found / (found + bound)
    if cheap is None or audit.is_contradicted:
        return AuditOffer(size, bound, recall, needed)
    by_order = found / audit.order_evidence.most(unread, found, size, audit.total_by_order)
    return AuditOffer(size, bound, recall, needed, by_order, cheap)


def _price(rule: Rule[Any], target: float, *, by_order: bool = False) -> int:
    """Return how many further random reads certify the target if none of them is relevant."""
    unread, found = rule.counts.unread, rule.counts.found
    evidence, total = rule.audit.evidence, rule.audit.total
    if by_order:
        evidence, total = rule.audit.order_evidence, rule.audit.total_by_order
    if total is not None and min(total - found, unread) < short_of(found, target):
        return 0
    return evidence.price(unread, found, short_of(found, target))


def price_of(rule: Rule[Any], what: str = DOCUMENTS) -> Sentence:
    """Return a sentence on the current cost of certainty in a review or, while too few are found, the `outlook`.

    If the order learns, the cost of the certificate by order is added, unless the reads contradict that certificate.
    Every random read so far counts, so an audit begun early costs less at the end; what is certified is not named.
    """
    unread, found = rule.counts.unread, rule.counts.found
    if not unread:
        return say("All documents were read.").about(what)
    ways = (False, True) if rule.audit.by_order and not rule.audit.is_contradicted else (False,)
    if found < LEAST_FOUND:
        population, alpha = rule.counts.population, rule.options.alpha
        outlooks = (outlook(population, rule.target, alpha=alpha, what=what, by_order=way) for way in ways)
        return joined(dict.fromkeys(outlooks))
    targets = sorted({rule.target, 0.95}) if rule.target < 0.95 else [rule.target]
    prices = {
        way: [(target, count) for target in targets if (count := _price(rule, target, by_order=way))]
        for way in ways
    }
    return joined(_price_sentence(price, what, by_order=way) for way, price in prices.items() if price)
