"""Stopping rules by name: from the settings of a review, or from a TOML file."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linker.base import config
from linker.base.errors import ConfigError, InputError
from linker.review.stopping import habits, rules
from linker.review.stopping.rule import Rule, RuleOptions

_RULES: dict[str, tuple[type[Rule[Any]], type[RuleOptions]]] = {
    "urn": (rules.Urn, rules.UrnOptions),
    "hypergeometric": (rules.Hypergeometric, RuleOptions),
    "qbcb": (rules.Controls, rules.ControlOptions),
    "row": (habits.InARow, habits.RowOptions),
    "until": (habits.Until, habits.UntilOptions),
    "reads": (habits.ReadCount, habits.ReadsOptions),
}
NAMES = tuple(_RULES)
DEFAULT = "urn"


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """A rule by name, the recall wanted, and the rule's options."""

    rule: str = DEFAULT
    target: float = 0.8
    options: RuleOptions = field(default_factory=rules.UrnOptions)

    @classmethod
    def read_table(cls, values: Mapping[str, Any], where: str, prefix: str) -> RuleSettings:
        """Return the settings of a TOML table; see `load`."""
        options = dict(values)
        name, target = options.pop("rule", DEFAULT), options.pop("target", 0.8)
        if not isinstance(name, str) or isinstance(target, bool) or not isinstance(target, int | float):
            raise ConfigError(
                f"{where}: rule is a name and target a number, such as rule = 'urn' and target = 0.8"
            )
        return _named(name, float(target), options, where, prefix)

    def start(self, population: int) -> Rule[Any]:
        """Return the rule for a review of that many documents; see `make`."""
        try:
            return _RULES[self.rule][0](population, self.target, self.options)
        except ValueError as e:
            raise InputError(f"the stopping rule {self.rule!r}: {e}") from None


def make(
    name: str = DEFAULT, population: int = 0, target: float = 0.8, options: Mapping[str, Any] | None = None
) -> Rule[Any]:
    """Return a new stopping rule that knows of no judgement yet.

    `population`: the documents that can be read, without the seeds; `target`: the recall wanted, above 0 to 1;
    `options`: the fields of the rule's options, as in JSON or TOML. Raises InputError for an unknown name, and
    ConfigError (its sibling) for a bad option; both suggest the closest name.
    """
    settings = _named(name, target, dict(options or {}), f"the stopping rule {name!r}", "")
    return settings.start(population)


def load(path: Path) -> RuleSettings:
    """Return the rule of a TOML file: `rule = "urn"`, `target = 0.8`, and the rule's options as keys.

    Raises ConfigError naming the file and the key, InputError for an unknown rule.
    """
    return config.load(path, RuleSettings)


def _named(name: str, target: float, options: dict[str, Any], where: str, prefix: str) -> RuleSettings:
    if name not in _RULES:
        near = difflib.get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"{where}: no stopping rule is called {name!r}: {hint}known are {', '.join(NAMES)}")
    if not 0 < target <= 1:
        raise InputError(
            f"{where}: a target recall of {target:g}: choose one above 0 and up to 1, such as 0.8"
        )
    known: type[RuleOptions] = _RULES[name][1]
    return RuleSettings(name, target, config.changed(known(), options, where, prefix, ()))
