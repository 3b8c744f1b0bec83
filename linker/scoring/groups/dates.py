"""The dates of documents, as days since year 1."""

from collections.abc import Sequence
from datetime import date

import numpy as np

from indexes.dtypes import BoolArray, Float64Array, Int64Array
from indexes.interface import Document
from linker.base.errors import InputError
from linker.scoring.ranking.candidates import day_of, document_day

LOOKED_AT = 1000  # documents examined to find the date field
DATED = 0.5  # minimum share of these documents that have a date in the field


def date_field(documents: Sequence[Document]) -> str | None:
    """Return the first metadata field with a date in at least half of the examined documents."""
    some = documents[:: max(1, len(documents) // LOOKED_AT)]
    names = dict.fromkeys(name for document in some for name in document.metadata)
    for name in names:
        dated = np.isfinite([document_day(document.metadata, name) for document in some])
        if dated.mean() >= DATED:
            return name
    return None


def days_of(documents: Sequence[Document]) -> Float64Array:
    """Return the date of each document as days since year 1, float64 [n], NaN if it has none."""
    if (name := date_field(documents)) is None:
        return np.full(len(documents), np.nan)
    return np.array([document_day(document.metadata, name) for document in documents])


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
    """Return whether the pairs lie within that many days of each other, bool [m]. Raises InputError without dates."""
    if not np.isfinite(dates).any():
        raise InputError(
            "`days` needs dates: no metadata field has an ISO date in at least half of the documents"
        )
    return ~(np.abs(dates[pairs[:, 0]] - dates[pairs[:, 1]]) > days)


def iso(day: float) -> str:
    """Return a day in ISO 8601."""
    return date.fromordinal(int(day)).isoformat()
