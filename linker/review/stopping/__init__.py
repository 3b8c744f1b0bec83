"""When to stop reading: rules by name, the audit of the unread, what certainty costs, and the sentence to publish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.review.stopping.audit import Audit
    from linker.review.stopping.cost import outlook, price, price_of, price_sentence
    from linker.review.stopping.naming import NAMES, RuleSettings, load, make
    from linker.review.stopping.rule import LEAST_FOUND, Rule
    from linker.review.stopping.sentence import MethodNote, method_note

__all__ = [
    "LEAST_FOUND", "NAMES", "Audit", "MethodNote", "Rule", "RuleSettings", "load", "make", "method_note", "outlook",
    "price", "price_of", "price_sentence",
]  # fmt: skip
__getattr__ = lazy(
    __name__,
    {
        "LEAST_FOUND": "linker.review.stopping.rule",
        "NAMES": "linker.review.stopping.naming",
        "Audit": "linker.review.stopping.audit",
        "MethodNote": "linker.review.stopping.sentence",
        "Rule": "linker.review.stopping.rule",
        "RuleSettings": "linker.review.stopping.naming",
        "load": "linker.review.stopping.naming",
        "make": "linker.review.stopping.naming",
        "method_note": "linker.review.stopping.sentence",
        "outlook": "linker.review.stopping.cost",
        "price": "linker.review.stopping.cost",
        "price_of": "linker.review.stopping.cost",
        "price_sentence": "linker.review.stopping.cost",
    },
)
