"""Compare metadata values with the bounds of a filter's ranges: as numbers or as dates, the same on every backend.

A value is a number if it can be parsed as a finite decimal number, and a date if it can be parsed as an ISO 8601
year, month, day or time of day (2021, 2021-03, 2021-03-14, 2021-03-14T15:09Z); without a zone it is UTC. A year is
both. Two numbers are compared as 64-bit floats, otherwise two dates chronologically; any other values are not
comparable. A date as a bound is the whole period that it names, so that `date<=2021-03` includes all of March; the
date of a document is the start of its period.
"""

import datetime
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

LONGEST = 64  # maximum length in characters of a number or a date
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?)?)?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# Other, unambiguous ways to write a date, and the usual reading of dates with slashes.
_OTHERWISE = (
    re.compile(r"(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.\s?(?P<year>\d{4})"),  # 31.12.2025
    re.compile(r"(?P<month>0?[1-9]|1[0-2])/(?P<day>\d{1,2})/(?P<year>\d{4})"),  # 12/31/2025, American
    re.compile(r"(?P<day>\d{1,2})/(?P<month>\d{1,2})/(?P<year>\d{4})"),  # 31/12/2025
    re.compile(r"(?P<year>\d{4})[/.](?P<month>\d{1,2})[/.](?P<day>\d{1,2})"),  # 2025/12/31
    re.compile(
        r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?\s+(?P<name>[a-z]{3,9})\.?,?\s+(?P<year>\d{4})", re.IGNORECASE
    ),
    re.compile(
        r"(?P<name>[a-z]{3,9})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>\d{4})", re.IGNORECASE
    ),
)
_SECOND = 1_000_000  # in microseconds
_LENGTHS = {"fraction": 1, "second": _SECOND, "minute": 60 * _SECOND, "day": 86_400 * _SECOND}
_EPOCH = datetime.datetime(1970, 1, 1)
COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt
}  # fmt: skip


class Period(NamedTuple):
    """The microseconds since 1970 (UTC) at which a date begins and ends."""

    begin: int
    end: int


def number_of(text: str) -> float | None:
    """Return the finite number that a text represents, or None."""
    text = text.strip()
    if len(text) > LONGEST or not _NUMBER.fullmatch(text):
        return None
    value = float(text) + 0.0  # removes the sign of -0.0
    return value if math.isfinite(value) else None


def period_of(text: str) -> Period | None:
    """Return the period of the ISO 8601 date or time that a text represents, or None."""
    match = _DATE.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if match is None:
        return None
    parts = match.groupdict()
    year, month, day = (int(parts[name] or 1) for name in ("year", "month", "day"))
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    micros = int((parts["fraction"] or "").ljust(6, "0")[:6])
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second, micros)
        offset = _offset(parts["zone"] or "Z")
    except ValueError:
        return None
    begin = _micros(moment) - offset
    for name, length in _LENGTHS.items():
        if parts[name]:
            return Period(begin, begin + length)
    following = (year + 1, 1) if parts["month"] is None or month == 12 else (year, month + 1)
    if following[0] > datetime.MAXYEAR:
        return Period(begin, _micros(datetime.datetime.max) + 1)
    return Period(begin, _micros(datetime.datetime(*following, 1)))


def _offset(zone: str) -> int:
    """Return a zone's distance from UTC in microseconds. Raises ValueError if there is no such zone."""
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:] if len(zone) > 3 else 0)
    if hours > 23 or minutes > 59:
        raise ValueError(zone)
    return (-1 if zone[0] == "-" else 1) * (hours * 60 + minutes) * 60 * _SECOND


def _micros(moment: datetime.datetime) -> int:
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)


def iso_of(text: str) -> str:
    """Return the ISO 8601 form of a date in another notation (31.12.2025, 2 March 2022); "" if it is not a date.

    For suggestions only: 03/02/2022 is read the American way, as the second of March, which may be wrong.
    """
    for form in _OTHERWISE:
        if match := form.match(text.strip()[:LONGEST]):
            parts = match.groupdict()
            try:
                month = int(parts.get("month") or 1 + _MONTHS.index(parts["name"][:3].lower()))
                return datetime.date(int(parts["year"]), month, int(parts["day"])).isoformat()
            except ValueError:
                continue
    return ""


def comparable(text: str) -> bool:
    """Return whether a text can be the bound of a range."""
    return number_of(text) is not None or period_of(text) is not None


def compares(value: str, sign: str, bound: str) -> bool:
    """Return whether `value sign bound` holds, for an operator in COMPARE: the slow, obvious definition."""
    number, limit = number_of(value), number_of(bound)
    if number is not None and limit is not None:
        return bool(COMPARE[sign](number, limit))
    period, limits = period_of(value), period_of(bound)
    if period is None or limits is None:
        return False
    return bool(date_sign(sign)(period.begin, date_limit(sign, limits)))


def date_limit(sign: str, period: Period) -> int:
    """Return the instant that a date is compared with: the end of the bound's period for > and <=."""
    return period.end if sign in (">", "<=") else period.begin


def date_sign(sign: str) -> Callable[[Any, Any], Any]:
    """Return the comparison with `date_limit`, which is the first instant after the period for > and <=."""
    return COMPARE[">=" if sign in (">", ">=") else "<"]


class Misfit(NamedTuple):
    """How many of a field's values cannot be compared with a bound, out of how many, and the most frequent of them."""

    odd: int
    values: int
    example: str
    kind: str  # "number", "date", or "" for neither


class Axis:
    """The values of one metadata field, prepared for comparison: built once, queried for many ranges."""

    def __init__(self, values: Iterable[tuple[str, Sequence[int]]]) -> None:
        """`values`: the field's distinct values, each with its rows."""
        column = list(values)
        numbers = [number_of(text) for text, _ in column]
        periods = [period_of(text) for text, _ in column]
        self._numbers = np.array([math.nan if n is None else n for n in numbers], dtype=np.float64)
        self._begins = np.array([p.begin if p else 0 for p in periods], dtype=np.int64)
        self._dated = np.array([p is not None for p in periods], dtype=bool)
        counts = [len(rows) for _, rows in column]
        self._texts, self._counts = [text for text, _ in column], np.array(counts, dtype=np.int64)
        self._rows = np.fromiter((row for _, rows in column for row in rows), np.int64, sum(counts))
        # for each entry of `_rows`, the position of its value in `_texts`
        self._value = np.repeat(np.arange(len(column)), counts)

    def misfit(self, bound: str) -> Misfit | None:
        """Return the values that no operator can compare with `bound`; None if all are comparable."""
        fits = np.zeros(len(self._texts), dtype=bool)
        numbers = ~np.isnan(self._numbers)
        if number_of(bound) is not None:
            fits |= numbers
        if period_of(bound) is not None:
            fits |= self._dated if number_of(bound) is None else self._dated & ~numbers
        if fits.all():
            return None
        odd = np.flatnonzero(~fits)
        first = int(odd[self._counts[odd].argmax()])
        kind = "number" if numbers[first] else "date" if self._dated[first] else ""
        counts = int(self._counts[odd].sum()), int(self._counts.sum())
        return Misfit(*counts, self._texts[first], kind)

    def rows(self, sign: str, bound: str) -> npt.NDArray[np.int64]:
        """Return the rows (int64 [n]) with a value that satisfies the operator and `bound`."""
        number, period = number_of(bound), period_of(bound)
        holds = np.zeros(len(self._numbers), dtype=bool)
        dated = self._dated
        if number is not None:
            holds |= COMPARE[sign](self._numbers, number)  # false for NaN
            dated = dated & np.isnan(self._numbers)  # two numbers are not compared as dates
        if period is not None:
            holds |= dated & date_sign(sign)(self._begins, date_limit(sign, period))
        return self._rows[holds[self._value]]
