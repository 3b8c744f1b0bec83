"""Read dates in the formats of spreadsheets and exports, and convert them to ISO 8601.

A format is a pattern of `strptime`, or ISO, UNIX or UNIX_MS; several formats, separated by |, describe a column that
mixes them.
"""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

# In addition to `strptime` formats: any form of ISO 8601, and seconds or milliseconds since 1970.
ISO, UNIX, UNIX_MS = "iso", "unix", "unix-ms"
DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y")
TIMES = ("", " %H:%M", " %H:%M:%S", ", %H:%M", " %I:%M %p", " %I:%M:%S %p")
FORMATS = (
    ISO,
    *(day + time for day in DAYS for time in TIMES),
    "%d. %B %Y",  # German: 2. März 2022
    "%a %b %d %H:%M:%S %z %Y",  # in posts: Wed Oct 10 20:19:24 +0000 2018
    "%a, %d %b %Y %H:%M:%S %z",  # RFC 2822
    "%a, %d %b %Y %H:%M:%S %Z",
    "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
    UNIX,
    UNIX_MS,
)  # fmt: skip
YEARS = range(1900, 2101)
EITHER = "|"  # separates the formats of a mixed column
MOST_MIXED, SAMPLE = 6, 100  # maximum numbers of formats in a column, and of texts used to recognise them
LIKE_A_DATE = re.compile(r"(?=.*\d)[\w.,:/+ -]{6,40}")
WORD = re.compile(r"[^\W\d_]{3,}")
MONTHS = {
    name: number
    for names in (
        "january february march april may june july august september october november december",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "jänner feber mär apr mai jun jul aug sep okt nov dez",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
    for number, name in enumerate(names.split(), start=1)
}
PLAIN_NUMBER = re.compile(r"\d{1,9}(?:[.,]\d+)?")  # 20240131 is a date, 7 and 1999 are not


def iso_date(text: str, form: str) -> str | None:
    """Return a date in ISO 8601, with the time of day if the format has one; None if it is not in that format."""
    if EITHER in form:
        return next((date for one in form.split(EITHER) if (date := iso_date(text, one))), None)
    text = text.strip()
    if "%B" in form:
        text = WORD.sub(_english, text).replace(" de ", " ")
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


def moment_of(text: str) -> datetime | None:
    """Return the time that a text states in ISO 8601, in UTC if it names no zone; None if it states none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def date_formats(texts: Sequence[str], share: float = 0.9) -> list[str]:
    """Return the formats in which at least a share of the texts are dates from 1900 to 2100, most likely first.

    There are several if days and months cannot be distinguished: then the day-first format comes first. If no single
    format reads enough of them, each result is several formats separated by |.
    """
    if not texts or all(PLAIN_NUMBER.fullmatch(t.strip()) and not _compact(t) for t in texts):
        return []
    return [form for form in FORMATS if _fits(texts, form, share)] or _mixed_formats(texts[:SAMPLE], share)


def _english(word: re.Match[str]) -> str:
    number = MONTHS.get(word[0].lower())
    return datetime(2000, number, 1).strftime("%B") if number else word[0]


def _mixed_formats(texts: Sequence[str], share: float) -> list[str]:
    """Return the few formats that together read enough of the texts, in a day-first and a month-first version."""
    if sum(bool(LIKE_A_DATE.fullmatch(t.strip())) for t in texts) < share * len(texts):
        return []
    fits = {form: {t for t in texts if _fits([t], form, 1.0)} for form in FORMATS[:-2]}
    mixtures: list[str] = []
    for month_first in (False, True):
        order = sorted(
            FORMATS[:-2], key=lambda form: (form.startswith("%m/") != month_first, -len(fits[form]))
        )
        formats, rest = list[str](), Counter(texts)
        while rest and len(formats) < MOST_MIXED:
            best = max(order, key=lambda form: sum(rest[t] for t in fits[form] if t in rest))
            if not any(t in rest for t in fits[best]):
                break
            formats.append(best)
            rest = Counter({t: n for t, n in rest.items() if t not in fits[best]})
        if rest.total() <= len(texts) * (1 - share) and (both := EITHER.join(formats)) not in mixtures:
            mixtures.append(both)
    return mixtures


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
