"""The settings of a review that its ledger keeps, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from indexes.hybrid import MODES, Mode
from linker.base.errors import InputError

Unit = Literal["topic", "pairs"]
OrderName = Literal["feedback", "probability", "z", "rank"]
KINDS: dict[str, tuple[type, ...]] = {
    "target": (int, float),
    "rule_options": (dict,),
    "until": (int,),
    "per_seed": (bool,),
    "double": (bool,),
    "audit": (int,),
    "where": (list, tuple),
    "seed": (int,),
    "threshold": (int, float),
    "score": (int, float),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How documents are ordered, and when to stop. Settings with other names do not belong to a review.

    unit: "topic" (all seeds describe one story; a document is judged once) or "pairs" (each seed has its own links).
    order: "feedback" learns from judgements (a topic's default); without it, seeds are merged by "probability", "z"
    or "rank" (see `linker.review.orders`), None: by probability if the index has a calibration, else by z. target:
    the recall to reach, 0 to 1. rule, rule_options: the stopping rule by name, None: "expected" for pairs, else "urn".
    until: stop after that many relevant documents, for each seed if `per_seed` holds. mode, where: as in
    a search. double: every document is judged by two reviewers. audit: documents per audit. seed: the seed of all
    random draws. threshold, score: each seed ends at the first candidate whose probability, or retrieval score, is
    lower.
    """

    unit: Unit = "topic"
    order: OrderName | None = None
    target: float = 0.9
    rule: str | None = None
    rule_options: Mapping[str, Any] = field(default_factory=dict)
    until: int | None = None
    per_seed: bool = False
    mode: Mode | None = None
    where: tuple[str, ...] = ()
    double: bool = False
    audit: int = 300
    seed: int = 0
    threshold: float | None = None
    score: float | None = None

    def __post_init__(self) -> None:
        if self.unit not in get_args(Unit):
            raise InputError(f"unknown unit {self.unit!r} of a review: choose topic or pairs")
        if self.order is not None and self.order not in get_args(OrderName):
            raise InputError(f"unknown order {self.order!r}: choose one of {', '.join(get_args(OrderName))}")
        if self.mode is not None and self.mode not in MODES:
            raise InputError(f"unknown mode {self.mode!r} of a review: choose one of {', '.join(MODES)}")
        if self.order == "feedback" and self.unit == "pairs":
            raise InputError(
                "an order that learns needs one topic: choose another order for seeds with links of their own"
            )
        if self.per_seed and self.unit == "topic":
            raise InputError(
                "all seeds of a topic share their documents: to stop per seed, choose the unit pairs"
            )
        if self.rule == "expected" and self.unit == "topic":
            raise InputError(
                "the stopping rule expected counts the links of seeds that have their own: choose another for a topic"
            )
        if self.learns and not (self.threshold is None and self.score is None):
            raise InputError(
                "an order that learns has scores of its own: a threshold needs an order without feedback"
            )
        if not 0 < self.target <= 1:
            raise InputError(f"a target recall of {self.target}: give a number above 0 and at most 1")
        for name in ("until", "audit"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise InputError(f"{name} = {value}: give a number of documents, at least 1")

    @property
    def learns(self) -> bool:
        """Whether the order learns from judgements."""
        return self.order == "feedback" or (self.order is None and self.unit == "topic")

    @property
    def enough(self) -> int | None:
        """How many matches suffice for a row: one or, with `per_seed`, `until` (None: a row is never complete)."""
        return self.until if self.per_seed else 1

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings among a ledger's values. Raises InputError if one cannot be used."""
        chosen = {name: values[name] for name in cls.__slots__ if values.get(name) is not None}
        for name, value in chosen.items():
            if not isinstance(value, KINDS.get(name, (str,))) or (
                isinstance(value, bool) and bool not in KINDS.get(name, ())
            ):
                raise InputError(f"the review's setting {name} = {value!r} cannot be used")
        if "where" in chosen:
            chosen["where"] = tuple(chosen["where"])
        return cls(**chosen)
