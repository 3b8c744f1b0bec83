"""The dates of documents, as days since year 1."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from indexes.comparing import iso_of
from indexes.dtypes import BoolArray, Float64Array, Int64Array
from indexes.interface import Document
from linker.base.errors import InputError
from linker.corpora.dates import UNIX, UNIX_MS, date_formats, iso_date
from linker.scoring.ranking.candidates import day_of, document_day

LOOKED_AT = 1000  # documents examined to find the date field
DATED = 0.5  # minimum share of these documents that have a date in the field


@dataclass(frozen=True, slots=True)
class DateField:
    """The metadata field with the dates of documents. `format`: see `linker.corpora.dates`; "": ISO or English."""

    name: str
    format: str = ""

    def day(self, document: Document) -> float:
        """Return the date of a document as days since year 1; NaN if it has none."""
        value = document.metadata.get(self.name)
        if not self.format or not isinstance(value, str):
            return document_day(document.metadata, self.name)
        return day_of(text) if (text := iso_date(value, self.format)) else math.nan


def date_field(documents: Sequence[Document]) -> DateField | None:
    """Return the first metadata field with a date in at least half of the examined documents.

    Dates in ISO 8601 or English take precedence over other formats, of which exactly one must fit: a field with dates
    such as 02/01/2024 is not used unless others show whether the day comes first.
    """
    some = documents[:: max(1, len(documents) // LOOKED_AT)]
    names = dict.fromkeys(name for document in some for name in document.metadata)
    for name in names:
        dated = np.isfinite([document_day(document.metadata, name) for document in some])
        if dated.mean() >= DATED:
            return DateField(name)
    for name in names:
        values = [document.metadata.get(name) for document in some]
        texts = [value for value in values if isinstance(value, str) and value.strip()]
        formats = date_formats(texts) if len(texts) >= DATED * len(some) else []
        if len(formats) == 1 and formats[0] not in (UNIX, UNIX_MS):
            return DateField(name, formats[0])
    return None


def days_of(documents: Sequence[Document]) -> Float64Array:
    """Return the date of each document as days since year 1, float64 [n], NaN if it has none."""
    if (field := date_field(documents)) is None:
        return np.full(len(documents), np.nan)
    return np.array([field.day(document) for document in documents])


def check_dated(documents: Sequence[Document], dates: Float64Array) -> None:
    """Raise InputError, with the first value that looks like a date, unless a document has one of the `dates`."""
    if np.isfinite(dates).any():
        return
    values = ((d.id, name, value) for d in documents for name, value in d.metadata.items())
    dated = ((*one, iso) for one in values if isinstance(one[2], str) and (iso := iso_of(one[2])))
    id_, name, value, iso = next(dated, ("", "", "", ""))
    first = f"; {name} of {id_} is {value!r}, whose format is uncertain or rare" if iso else ""
    raise InputError(
        "`days` needs dates: no metadata field has readable ones in at least half of the documents"
        f"{first}; write dates in ISO 8601, such as {iso or '2024-01-31'}"
    )


def places(ids: Sequence[str], dates: Float64Array) -> list[tuple[float, int, str]]:
    """Return keys that sort documents by date and id; those without a date are last.

    Groups then do not depend on the order of the corpus, and the first of several near copies is the earliest.
    """
    known = np.nan_to_num(dates, nan=np.inf).tolist()
    return [(day, len(id_), id_) for day, id_ in zip(known, ids, strict=True)]


def fill_from_texts(texts: Sequence[str], dates: Float64Array) -> Float64Array:
    """Return `dates` [n], with each unknown date replaced by the last date that the text states."""
    return np.array([day_of(text) if np.isnan(day) else day for text, day in zip(texts, dates, strict=True)])


def near_in_time(pairs: Int64Array, dates: Float64Array, days: float) -> BoolArray:
    """Return whether the pairs lie within that many days of each other or have no date, bool [m]."""
    return ~(np.abs(dates[pairs[:, 0]] - dates[pairs[:, 1]]) > days)


def iso(day: float) -> str:
    """Return a day in ISO 8601."""
    return date.fromordinal(int(day)).isoformat()
