"""When to stop reading: rules by name, the audit of the unread, what certainty costs, and the sentence to publish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.review.stopping.audit import Audit
    from linker.review.stopping.naming import NAMES, RuleSettings, load, make
    from linker.review.stopping.rule import LEAST_FOUND, Rule

__all__ = ["LEAST_FOUND", "NAMES", "Audit", "Rule", "RuleSettings", "load", "make"]
__getattr__ = lazy(
    __name__,
    {
        "LEAST_FOUND": "linker.review.stopping.rule",
        "NAMES": "linker.review.stopping.naming",
        "Audit": "linker.review.stopping.audit",
        "Rule": "linker.review.stopping.rule",
        "RuleSettings": "linker.review.stopping.naming",
        "load": "linker.review.stopping.naming",
        "make": "linker.review.stopping.naming",
    },
)
