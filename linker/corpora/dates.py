"""Read dates as spreadsheets and exports write them, and write them in ISO 8601."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

# Beside the formats of `strptime`: any form of ISO 8601, and seconds or milliseconds since 1970.
ISO, UNIX, UNIX_MS = "iso", "unix", "unix-ms"
DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y")
TIMES = ("", " %H:%M", " %H:%M:%S", ", %H:%M", " %I:%M %p", " %I:%M:%S %p")
FORMATS = (
    ISO,
    *(day + time for day in DAYS for time in TIMES),
    "%a %b %d %H:%M:%S %z %Y",  # of posts: Wed Oct 10 20:19:24 +0000 2018
    "%a, %d %b %Y %H:%M:%S %z",  # RFC 2822
    "%a, %d %b %Y %H:%M:%S %Z",
    "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
    UNIX,
    UNIX_MS,
)  # fmt: skip
YEARS = range(1900, 2101)
PLAIN_NUMBER = re.compile(r"\d{1,9}(?:[.,]\d+)?")  # 20240131 is a date, 7 and 1999 are none


def iso_date(text: str, form: str) -> str | None:
    """Return a date in ISO 8601, with the time of day where the format has one; None where it is not in that format."""
    text = text.strip()
    try:
        if form in (UNIX, UNIX_MS):
            moment = datetime.fromtimestamp(float(text) / (1000 if form == UNIX_MS else 1), UTC)
        elif form == ISO:
            moment = datetime.fromisoformat(text)
        else:
            moment = datetime.strptime(text, form)
    except (ValueError, OverflowError, OSError):
        return None
    whole_day = len(text) <= 10 if form == ISO else "%H" not in form and "%I" not in form and "%" in form
    return moment.date().isoformat() if whole_day else moment.isoformat()


def date_formats(texts: Sequence[str], share: float = 0.9) -> list[str]:
    """Return the formats in which at least a share of the texts are dates of 1900 to 2100, the likeliest first.

    More than one where days and months cannot be told apart: then the first is the one with the day first.
    """
    if not texts or all(PLAIN_NUMBER.fullmatch(t.strip()) and not _compact(t) for t in texts):
        return []
    return [form for form in FORMATS if _fits(texts, form, share)]


def _compact(text: str) -> bool:
    return len(text.strip()) == 8


def _fits(texts: Sequence[str], form: str, share: float) -> bool:
    allowed = len(texts) * (1 - share)
    for text in texts:
        date = iso_date(text, form)
        if date is None or int(date[:4]) not in YEARS:
            allowed -= 1
            if allowed < 0:
                return False
    return True
