"""Dates of documents and queries as day numbers: from a metadata field, or the last date that a text states."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from typing import Any

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_YEAR = r"(?P<year>(?:1[89]|20)\d\d)"
FORMS = (
    re.compile(rf"\b{_YEAR}-(?P<number>\d\d)-(?P<day>\d\d)(?!\d)"),  # 2020-01-14, with or without a time
    re.compile(
        rf"\b(?P<day>\d\d?)(?:st|nd|rd|th)?\s+{_MONTH},?\s+{_YEAR}\b", re.IGNORECASE
    ),  # 14 January 2020
    re.compile(
        rf"\b{_MONTH}\s+(?P<day>\d\d?)(?:st|nd|rd|th)?,?\s+{_YEAR}\b", re.IGNORECASE
    ),  # January 14, 2020
)
MOST = 1 << 16  # characters searched, at the end of a text


def day_of(text: str) -> float:
    """Return the last date that a text states in English or ISO 8601, as days since year 1; NaN if there is none."""
    text = text[-MOST:]
    found = [match for form in FORMS for match in form.finditer(text)]
    for match in sorted(found, key=lambda m: -m.start()):
        parts = match.groupdict()
        month = int(parts["number"]) if "number" in parts else 1 + MONTHS.index(parts["month"].lower())
        try:
            return float(datetime.date(int(parts["year"]), month, int(parts["day"])).toordinal())
        except ValueError:
            continue
    return math.nan


def document_day(metadata: Mapping[str, Any], field: str) -> float:
    """Return the date in a document's metadata field as days since year 1; NaN if there is none."""
    value = metadata.get(field)
    return day_of(value) if isinstance(value, str) else math.nan
