"""Rankers pooled over several language pairs, for pairs with few links or none.

benchmarks/pool_rankers.py writes pooled.json, which holds a ranker for each case of `pooled` and names the languages,
all paired with English, whose training pages it learned from: tr and zh in every case, fr also for dictionaries alone,
de also for dictionaries with links; ru never.
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
    """Return the ranker for a task with or without a dictionary and links; without links, that for dictionaries."""
    name = ("both" if dictionary else "links") if links else "dictionary"
    return _all()[name]


@cache
def _all() -> dict[str, Pooled]:
    text = files("linker.crosslingual.ranking").joinpath("pooled.json").read_text(encoding="utf-8")
    return {name: from_json(value) for name, value in json.loads(text).items()}


def from_json(value: dict[str, object]) -> Pooled:
    """Return the ranker of one entry of pooled.json."""
    names = value["names"]
    numbers = {key: np.array(value[key], np.float64) for key in ("centre", "scale", "weights", "platt")}
    assert isinstance(names, list)
    none, temperature = float(str(value["none"])), float(str(value["temperature"]))
    ranker = Ranker(tuple(names), numbers["centre"], numbers["scale"], numbers["weights"], none, temperature)
    return Pooled(ranker, Platt(*numbers["platt"].tolist()))


def to_json(pooled: Pooled) -> dict[str, object]:
    """Return an entry of pooled.json; five digits are enough."""
    ranker = pooled.ranker
    return {
        "names": list(ranker.names),
        **{k: [float(f"{x:.5g}") for x in getattr(ranker, k)] for k in ("centre", "scale", "weights")},
        "none": ranker.none,
        "temperature": ranker.temperature,
        "platt": [pooled.platt.slope, pooled.platt.offset],
    }
