"""A linear ranker with the model that turns its scores into probabilities, and both as JSON values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from indexes.dtypes import Float64Array
from linker.scoring.probability.verification import LIST, Verifier, names_of
from linker.scoring.ranking.linear import LinearRanker

RANKER = ("centre", "scale", "weights")
VERIFIER = ("centre", "scale", "linked", "right")
# The pooled rankers have learned from collections of about LARGE pages. The log odds that a page has a counterpart are
# SURPLUS too high for each factor e by which a collection is smaller.
LARGE, SURPLUS = 4000, 0.17


@dataclass(frozen=True, eq=False)
class CalibratedRanker:
    """A ranker and its probability model; `elsewhere`: both were learned on other languages."""

    ranker: LinearRanker
    verifier: Verifier
    elsewhere: bool = False

    def of_size(self, targets: int) -> CalibratedRanker:
        """Return the model for a collection with this number of target pages, in which few wrong ones compete."""
        if not self.elsewhere or targets >= LARGE:
            return self
        linked = self.verifier.linked.copy()
        linked[-1] -= SURPLUS * math.log(LARGE / max(targets, 1))
        return replace(self, verifier=replace(self.verifier, linked=linked))


def from_json(value: Mapping[str, Any]) -> CalibratedRanker:
    """Return the ranker that `to_json` wrote. Raises KeyError, TypeError or ValueError if it is not valid."""
    ranker = LinearRanker(
        tuple(map(str, value["names"])),
        **{key: np.array(value[key], np.float64) for key in RANKER},
        none=float(value["none"]),
        temperature=float(value["temperature"]),
    )
    parts = {key: np.array(value["verifier"][key], np.float64) for key in VERIFIER}
    arrays = [getattr(ranker, key) for key in RANKER], list(parts.values())
    f, v = len(ranker.names), len(LIST) + len(ranker.names)
    if [part.shape for group in arrays for part in group] != [
        (size,) for size in (f, f, f, v, v, v + 1, v + 1)
    ]:
        raise ValueError("some features of its ranker have no number")
    numbers = np.concatenate([*arrays[0], *arrays[1], [ranker.none, ranker.temperature]])
    positive = np.concatenate([ranker.scale, parts["scale"], [ranker.temperature]])
    if not np.isfinite(numbers).all() or not (positive > 0).all():
        raise ValueError("a number of its ranker is out of range")
    return CalibratedRanker(ranker, Verifier(names_of(ranker), **parts))


def to_json(calibrated: CalibratedRanker) -> dict[str, Any]:
    """Return a ranker as JSON values; five digits are enough."""
    ranker, verifier = calibrated.ranker, calibrated.verifier
    return {
        "names": list(ranker.names),
        **{key: _short(getattr(ranker, key)) for key in RANKER},
        "none": ranker.none,
        "temperature": ranker.temperature,
        "verifier": {key: _short(getattr(verifier, key)) for key in VERIFIER},
    }


def _short(values: Float64Array) -> list[float]:
    return [float(f"{x:.5g}") for x in values]
