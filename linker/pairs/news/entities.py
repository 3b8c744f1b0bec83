"""The four groups of named entities of a news article, and how alike two articles are in each (Singh et al., 2022)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from indexes.dtypes import Float64Array

Mention = tuple[str, str]  # text and label
# OntoNotes' labels; PER and MISC are those of pipelines that learned from Wikipedia.
GROUPS: dict[str, frozenset[str]] = {
    "GEO": frozenset({"GPE", "LOC"}),
    "ORG": frozenset({"ORG", "PERSON", "FAC", "EVENT", "NORP", "PRODUCT", "WORK_OF_ART", "PER", "MISC"}),
    "DATE": frozenset({"DATE", "TIME"}),
    "QTY": frozenset({"QUANTITY", "ORDINAL", "CARDINAL"}),
}


def group_counts(mentions: Sequence[Mention], date: str = "") -> list[Counter[str]]:
    """Count the entities of each group, lower-cased and stripped; the day of publication joins DATE."""
    every = [*mentions, (date, "DATE")]
    return [
        Counter(name for text, label in every if label in labels and (name := text.lower().strip()))
        for labels in GROUPS.values()
    ]


def count_cosine(a: Counter[str], b: Counter[str]) -> float:
    """Return the cosine of two counts; 0 where either is empty."""
    dot = sum(count * b[name] for name, count in a.items())
    return dot / math.sqrt(_square(a) * _square(b)) if dot else 0.0


def entity_cosines(first: Sequence[list[Counter[str]]], second: Sequence[list[Counter[str]]]) -> Float64Array:
    """Return the count-cosine of each group for each pair: float64 [n, 4], in the order of GROUPS."""
    rows = [
        [count_cosine(a, b) for a, b in zip(left, right, strict=True)]
        for left, right in zip(first, second, strict=True)
    ]
    return np.array(rows, np.float64).reshape(len(rows), len(GROUPS))


def _square(counts: Counter[str]) -> int:
    return sum(count * count for count in counts.values())
