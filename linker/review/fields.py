"""The metadata fields of an index, so that a page can offer filters for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from indexes.interface import Metadata, filter_values
from linker.corpora.dates import moment_of

if TYPE_CHECKING:
    from linker.engine.engine import Engine

Kind = Literal["choice", "number", "date", "text", "undated"]
SAMPLE = 2000  # documents examined, spread evenly over the index
CHOICES = 30  # maximum distinct values of a field offered as a list
MOST = 12  # maximum number of fields offered


@dataclass(frozen=True, slots=True)
class MetadataField:
    """A metadata field: numbers and dates are filtered by range, a few values by choice (the most frequent first).

    "undated": most values are dates, but not all, so no range is possible; `values` has one that is not a date.
    """

    name: str
    kind: Kind
    values: tuple[str, ...] = ()


def fields(engine: Engine) -> list[MetadataField]:
    """Return the fields by which documents can be filtered, those with most values first, according to a sample."""
    rows = engine.collection.rows
    live = rows.mask()
    numbers = np.arange(len(rows.ids)) if live is None else np.flatnonzero(live)
    chosen = numbers[np.unique(np.linspace(0, len(numbers) - 1, min(SAMPLE, len(numbers)), dtype=np.int64))]
    return of_metadata(engine.collection.documents[int(row)].metadata for row in chosen)


def of_metadata(sample: Iterable[Metadata]) -> list[MetadataField]:
    """Return the filterable fields of documents with this metadata, without text fields whose values hardly repeat."""
    counts: dict[str, Counter[str]] = {}
    for metadata in sample:
        for name, value in metadata.items():
            counts.setdefault(name, Counter()).update(filter_values(value))
    found = [field for name, values in counts.items() if (field := _field(name, values))]
    return sorted(found, key=lambda f: -counts[f.name].total())[:MOST]


def _field(name: str, values: Counter[str]) -> MetadataField | None:
    given = [value for value in values if value.strip()]
    if not given or "=" in name or not name.isprintable():
        return None
    others = [value for value in given if not _is_date(value)]
    if not others:
        return MetadataField(name, "date")
    if name.lower() == "date" or 2 * len(others) < len(given):
        return MetadataField(name, "undated", (others[0],))
    if all(_is_number(value) for value in given) and len(given) > 5:
        return MetadataField(name, "number")
    if len(given) <= CHOICES:
        return MetadataField(
            name, "choice", tuple(value for value, _ in values.most_common() if value.strip())
        )
    repeated = values.total() > 1.2 * len(given)
    return MetadataField(name, "text") if repeated else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    return text[:4].isdecimal() and "-" in text and moment_of(text) is not None
