"""Four groups of named entities, and the similarity of two articles in each (Singh et al., 2022)."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from indexes.dtypes import Float64Array
from linker.scoring.pairs.words import count_cosine

Mention = tuple[str, str]  # text and label
# The labels are those of OntoNotes; PER and MISC come from pipelines trained on Wikipedia.
GROUPS: dict[str, frozenset[str]] = {
    "GEO": frozenset({"GPE", "LOC"}),
    "ORG": frozenset({"ORG", "PERSON", "FAC", "EVENT", "NORP", "PRODUCT", "WORK_OF_ART", "PER", "MISC"}),
    "DATE": frozenset({"DATE", "TIME"}),
    "QTY": frozenset({"QUANTITY", "ORDINAL", "CARDINAL"}),
}


def group_counts(mentions: Sequence[Mention], date: str = "") -> list[Counter[str]]:
    """Return the entity counts of each group, lower-cased and stripped; the day of publication counts as DATE."""
    mentions = [*mentions, (date, "DATE")]
    return [
        Counter(name for text, label in mentions if label in labels and (name := text.lower().strip()))
        for labels in GROUPS.values()
    ]


def entity_cosines(first: Sequence[list[Counter[str]]], second: Sequence[list[Counter[str]]]) -> Float64Array:
    """Return the cosine of the counts per pair and group, float64 [n, 4], in the order of GROUPS."""
    rows = [
        [count_cosine(a, b) for a, b in zip(left, right, strict=True)]
        for left, right in zip(first, second, strict=True)
    ]
    return np.array(rows, np.float64).reshape(len(rows), len(GROUPS))
