"""Rankers pooled over several language pairs, for pairs with few links or none.

benchmarks/pool_rankers.py writes pooled.json, which holds a ranker and its verifier for each case of `pooled` and names
the languages, all paired with English, whose training pages they learned from.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from indexes.dtypes import Float64Array
from linker.crosslingual.ranking.ranker import Ranker
from linker.crosslingual.ranking.verification import Verifier, names_of

VERIFIER = ("centre", "scale", "linked", "right")


@dataclass(frozen=True, eq=False)
class Pooled:
    """A ranker and what makes probabilities of its scores."""

    ranker: Ranker
    verifier: Verifier


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
    numbers = {key: np.array(value[key], np.float64) for key in ("centre", "scale", "weights")}
    assert isinstance(names, list)
    none, temperature = float(str(value["none"])), float(str(value["temperature"]))
    ranker = Ranker(tuple(names), numbers["centre"], numbers["scale"], numbers["weights"], none, temperature)
    parts = value["verifier"]
    assert isinstance(parts, dict)
    verifier = Verifier(names_of(ranker), **{key: np.array(parts[key], np.float64) for key in VERIFIER})
    return Pooled(ranker, verifier)


def to_json(pooled: Pooled) -> dict[str, object]:
    """Return an entry of pooled.json; five digits are enough."""
    ranker, verifier = pooled.ranker, pooled.verifier
    return {
        "names": list(ranker.names),
        **{key: _short(getattr(ranker, key)) for key in ("centre", "scale", "weights")},
        "none": ranker.none,
        "temperature": ranker.temperature,
        "verifier": {key: _short(getattr(verifier, key)) for key in VERIFIER},
    }


def _short(values: Float64Array) -> list[float]:
    return [float(f"{x:.5g}") for x in values]
