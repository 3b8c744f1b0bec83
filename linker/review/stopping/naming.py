"""Stopping rules by name, from the settings of a review."""

import difflib
from collections.abc import Mapping
from typing import Any

from linker.base import config
from linker.base.errors import InputError
from linker.review.stopping import expected, habits, rules
from linker.review.stopping.rule import Rule

_RULES: dict[str, type[Rule[Any]]] = {
    "urn": rules.Urn, "expected": expected.ExpectedLinks, "hypergeometric": rules.Hypergeometric,
    "qbcb": rules.Controls, "row": habits.InARow, "until": habits.Until, "reads": habits.ReadCount,
}  # fmt: skip
NAMES = tuple(_RULES)
DEFAULT = "urn"


def make(
    name: str = DEFAULT, population: int = 0, target: float = 0.8, options: Mapping[str, Any] | None = None
) -> Rule[Any]:
    """Return a new stopping rule, which has seen no judgements yet.

    `population`: how many documents can be read, without the seeds; `target`: the recall wanted, above 0 and at most 1;
    `options`: the fields of the rule's options, as JSON values. Raises InputError for an unknown name and ConfigError
    for a bad option; both suggest the closest name.
    """
    where = f"the stopping rule {name!r}"
    if name not in _RULES:
        near = difflib.get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"no stopping rule is called {name!r}: {hint}the known rules are {', '.join(NAMES)}")
    if not 0 < target <= 1:
        raise InputError(
            f"{where}: a target recall of {target:g}: choose one above 0 and up to 1, such as 0.8"
        )
    rule = _RULES[name]
    chosen = config.changed(rule.kind(), dict(options or {}), where, "", ())
    try:
        return rule(population, target, chosen)
    except ValueError as e:
        raise InputError(f"{where}: {e}") from None
