"""Rankers pooled over several language pairs: the start for pairs with few links or none.

pooled.json holds one for each case (`pooled`) and names the languages, all to English, whose training pages it was made
of: tr and zh in all, fr as well for dictionaries alone, de as well for dictionaries with links. ru is in none.
benchmarks/pool_rankers.py makes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from linker.crosslingual.ranking.calibration import Platt
from linker.crosslingual.ranking.ranker import Ranker


@dataclass(frozen=True, eq=False)
class Pooled:
    """A ranker and its calibration."""

    ranker: Ranker
    platt: Platt


def pooled(dictionary: bool, links: bool) -> Pooled:
    """Return the ranker learned where there were dictionaries or none, and links to learn from or none."""
    name = ("both" if dictionary else "links") if links else "dictionary"
    return _all()[name]


@cache
def _all() -> dict[str, Pooled]:
    text = files("linker.crosslingual.ranking").joinpath("pooled.json").read_text(encoding="utf-8")
    return {name: from_json(value) for name, value in json.loads(text).items()}


def from_json(value: dict[str, object]) -> Pooled:
    """Read one entry of pooled.json."""
    names = value["names"]
    numbers = {key: np.array(value[key], np.float64) for key in ("centre", "scale", "weights", "platt")}
    assert isinstance(names, list)
    none, temperature = float(str(value["none"])), float(str(value["temperature"]))
    ranker = Ranker(tuple(names), numbers["centre"], numbers["scale"], numbers["weights"], none, temperature)
    return Pooled(ranker, Platt(*numbers["platt"].tolist()))


def to_json(pooled: Pooled) -> dict[str, object]:
    """Write one entry of pooled.json; four digits are enough."""
    ranker = pooled.ranker
    return {
        "names": list(ranker.names),
        **{k: [float(f"{x:.5g}") for x in getattr(ranker, k)] for k in ("centre", "scale", "weights")},
        "none": ranker.none,
        "temperature": ranker.temperature,
        "platt": [pooled.platt.slope, pooled.platt.offset],
    }
