"""The candidates of all rows, found by a job and stored in a file, so that nothing is computed twice."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import xxhash

from linker.base.errors import InputError
from linker.base.files import read_bytes, write_atomically
from linker.review.interface import Seed
from linker.scoring.probability.promise import Promise, promise


@dataclass(frozen=True, slots=True)
class Match:
    """A document that may be a row's match, with P(link)."""

    id: str
    probability: float


@dataclass(frozen=True, slots=True)
class Matches:
    """Each row's candidates, best first, by the seed's id, and a stamp of their inputs (`stamp`).

    `known`: how many rows had a match when the candidates were computed; the probabilities were learned from these
    rows. `held` and `right`: if the index has a calibration, P(link) of the first candidates of held-out texts, and
    whether each of them is correct.
    """

    stamp: str
    rows: Mapping[str, tuple[Match, ...]]
    known: int = 0
    held: tuple[float, ...] = ()
    right: tuple[bool, ...] = field(default=())

    def promise(self, precision: float, delta: float) -> Promise | None:
        """Return the threshold that guarantees a precision (Learn then Test), or None if none is certified."""
        return promise(np.array(self.held), np.array(self.right, bool), precision, delta)


def stamp(seeds: Iterable[Seed], where: Iterable[str], generation: int) -> str:
    """Return a value that changes with the rows, the review's filter, and the documents of the index."""
    digest = xxhash.xxh3_128()
    for seed in seeds:
        digest.update(orjson.dumps([seed.id, seed.title, seed.text, seed.document]))
    digest.update(orjson.dumps([list(where), generation]))
    return digest.hexdigest()


def save(path: Path, matches: Matches) -> None:
    """Write the candidates as JSON, all of them or none. Raises InputError."""
    rows = {
        seed: [[m.id for m in candidates], [round(m.probability, 6) for m in candidates]]
        for seed, candidates in matches.rows.items()
    }
    values: dict[str, Any] = {
        "stamp": matches.stamp, "known": matches.known, "held": matches.held, "right": matches.right, "rows": rows
    }  # fmt: skip
    write_atomically(path, orjson.dumps(values))


def load(path: Path) -> Matches:
    """Return the candidates that `save` wrote. Raises InputError if the file is damaged."""
    try:
        values = orjson.loads(read_bytes(path))
        rows = {
            str(seed): tuple(Match(str(id_), float(p)) for id_, p in zip(*columns, strict=True))
            for seed, columns in values["rows"].items()
        }
        held, right = tuple(map(float, values["held"])), tuple(map(bool, values["right"]))
        if len(held) != len(right):
            raise ValueError("held")
        return Matches(str(values["stamp"]), rows, int(values["known"]), held, right)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"{path} is not a file of candidates: delete it, and open the page again") from None
