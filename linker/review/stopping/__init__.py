"""When to stop reading: stopping rules, the audit of unread documents, the cost of certainty, and the method note."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.review.stopping.audit import Audit
    from linker.review.stopping.cost import AuditOffer, offer_of, outlook, price, price_of
    from linker.review.stopping.naming import NAMES, make
    from linker.review.stopping.rule import LEAST_FOUND, Rule
    from linker.review.stopping.sentence import MethodNote, method_note
    from linker.review.stopping.total import by_name

__all__ = [
    "LEAST_FOUND",
    "NAMES",
    "Audit",
    "AuditOffer",
    "MethodNote",
    "Rule",
    "by_name",
    "make",
    "method_note",
    "offer_of",
    "outlook",
    "price",
    "price_of",
]  # fmt: skip
__getattr__ = lazy(__name__)
