"""Rankers pooled over several language pairs, for pairs with few links or none.

benchmarks/pool_rankers.py writes pooled.json, which holds one ranker with its verifier for each `TaskSetting`, learned
from training pages of all the languages that the file names, all paired with English.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Literal

from linker.scoring.ranking.calibrated_ranker import CalibratedRanker, from_json

Taught = Literal["nothing", "pseudo-links", "links"]
TAUGHT: tuple[Taught, ...] = ("nothing", "pseudo-links", "links")


@dataclass(frozen=True, slots=True)
class TaskSetting:
    """The evidence that a task has: the source of learned words (`taught`), a dictionary, an encoder, page layout.

    A linear ranker has no weight for "this score is missing", so each combination has its own ranker.
    """

    taught: Taught = "nothing"
    dictionary: bool = False
    encoder: bool = False
    layout: bool = True

    @property
    def name(self) -> str:
        """The setting's name in pooled.json, such as "dictionary+links+layout"."""
        parts = {
            "dictionary": self.dictionary,
            self.taught: self.taught != "nothing",
            "encoder": self.encoder,
            "layout": self.layout,
        }
        return "+".join(name for name, present in parts.items() if present) or "strings"

    def uses(self, feature: str) -> bool:
        """Return whether a ranker for this setting uses `feature`, one of those measured with all kinds of evidence.

        "chosen.gap" sums the scores that generate candidates, which differ between settings, so no setting uses it.
        """
        if feature == "chosen.gap" or feature.startswith("marks."):
            return self.layout and feature != "chosen.gap"
        return self.encoder or not feature.startswith("encoder.")


SETTINGS = tuple(
    TaskSetting(taught, dictionary, encoder, layout)
    for taught, dictionary, encoder, layout in product(TAUGHT, (False, True), (False, True), (False, True))
)


@cache
def rankers() -> Mapping[str, CalibratedRanker]:
    """Return the package's rankers by the names of their settings."""
    text = files("linker.crosslingual.ranking").joinpath("pooled.json").read_text(encoding="utf-8")
    return all_from_json(json.loads(text))


def all_from_json(values: Mapping[str, object]) -> Mapping[str, CalibratedRanker]:
    """Return the rankers of pooled.json, or of another mapping like it, by name."""
    return {
        name: replace(from_json(value), elsewhere=True)
        for name, value in values.items()
        if isinstance(value, dict)
    }
