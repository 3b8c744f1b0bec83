"""Small pages and slow, obvious oracles."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from indexes.dtypes import Float32Array
from linker.crosslingual.pages.languages import language
from linker.crosslingual.pages.pages import Pages
from linker.crosslingual.scoring.candidates import Candidates, Neighbours


def pages(texts: Mapping[str, str], code: str = "und") -> Pages:
    return Pages(tuple(texts), tuple(texts.values()), language(code))


def numbered(texts: Sequence[str], prefix: str, code: str = "und") -> Pages:
    return pages({f"{prefix}{i}": text for i, text in enumerate(texts)}, code)


NOBODY = np.empty((0, 0), np.int32)


class Given:
    """A scorer with given scores."""

    def __init__(self, scores: Sequence[Sequence[float]]) -> None:
        self.scores: Float32Array = np.array(scores, np.float32)

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.scores.shape
        return n, m

    def block(self, begin: int, end: int) -> Float32Array:
        return self.scores[begin:end].copy()


def neighbours(candidates: Candidates, forward: Sequence[float], backward: Sequence[float]) -> Neighbours:
    return Neighbours(candidates, np.array(forward, np.float32), np.array(backward, np.float32), NOBODY)


def slow_m(
    f: set[str],
    e: set[str],
    links: set[tuple[str, str]],
    weights: tuple[Mapping[str, float], Mapping[str, float]] | None = None,
) -> float:
    """M from methods.md, word by word."""
    hits = mass = 0.0
    known_f, known_e = {a for a, _ in links}, {b for _, b in links}
    for w in f & known_f:
        weight = weights[0][w] if weights else 1.0
        mass += weight
        hits += weight * any((w, v) in links for v in e)
    for v in e & known_e:
        weight = weights[1][v] if weights else 1.0
        mass += weight
        hits += weight * any((w, v) in links for w in f)
    return hits / mass if mass else 0.0


def slow_idf(sets: Sequence[set[str]]) -> dict[str, float]:
    words = set().union(*sets)
    return {w: math.log((len(sets) + 1) / (sum(w in s for s in sets) + 1)) for w in words}
