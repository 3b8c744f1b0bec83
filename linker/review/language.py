"""The languages of the review page: gettext catalogues read by Babel, and numbers and dates in each locale's format."""

import functools
import io
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Literal

from babel import Locale, negotiate_locale
from babel.dates import format_date, format_datetime, format_timedelta
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal, format_percent, format_scientific
from babel.support import Translations

from linker.corpora.dates import moment_of
from linker.review.wording import Sentence

FOLDER = Path(__file__).with_name("locale")
SOURCE = "en"
DAY = re.compile(r"\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?$")
LANGUAGES: Mapping[str, str] = {"en": "English", "de": "Deutsch", "es": "Español", "fr": "Français"}


class ReaderLanguage:
    """One language of the page. `code` is its BCP 47 tag; its messages come from all files `locale/CODE/*.po`."""

    def __init__(self, code: str) -> None:
        self.code, self.name = code, LANGUAGES[code]
        self.locale = Locale.parse(code)
        self.translations = Translations(fp=_compiled(code))

    def text(self, message: str, **values: object) -> str:
        """Return a message in this language, with its placeholders `%(name)s` filled in."""
        translated = self.translations.gettext(message)
        return translated % values if values else translated

    def plural(self, one: str, many: str, count: int, **values: object) -> str:
        """Return the message for this count, with `%(num)s` and other values filled in."""
        return self.translations.ngettext(one, many, count) % {"num": self.number(count), **values}

    def number(self, value: float, digits: int = 3) -> str:
        """Return a number in the locale's format, with at most `digits` decimal places."""
        return format_decimal(round(value, digits), format=f"#,##0.{'#' * digits}", locale=self.locale)

    def percent(self, share: float) -> str:
        """Return a share, 0 to 1, in whole per cent."""
        return format_percent(share, locale=self.locale)

    def floor_percent(self, share: float) -> str:
        """Return a share in whole per cent, rounded down: certified values are never rounded up."""
        return self.percent(math.floor(share * 100 + 1e-9) / 100)

    def sentence(self, text: str) -> str:
        """Return a `Sentence` in this language; any other text stays as it is."""
        return text.render(self.translations, self._value) if isinstance(text, Sentence) else text

    def _value(self, value: int | float | Decimal) -> str:
        """Return a value of a sentence in this language's format: see `linker.review.wording.Value`."""
        if isinstance(value, float):
            return self.percent(value)
        if isinstance(value, int):
            return self.number(value)
        if value and value.adjusted() < -6:
            return format_scientific(value, format="0.##E0", locale=self.locale)
        digits = max(0, -int(value.as_tuple().exponent))
        return format_decimal(value, format=f"#,##0.{'0' * digits}", locale=self.locale)

    def time(self, value: str, form: Literal["short", "medium", "long"] = "medium") -> str:
        """Format an ISO 8601 time for the locale, in UTC; other text is returned unchanged."""
        moment = moment_of(value)
        return format_datetime(moment.astimezone(UTC), form, locale=self.locale) if moment else value

    def ago(self, value: str) -> str:
        """Return how long ago a time in ISO 8601 was, in words; any other text is returned unchanged."""
        if (moment := moment_of(value)) is None:
            return value
        since = min(moment - datetime.now(UTC), timedelta(0))
        return str(format_timedelta(since, add_direction=True, threshold=1, locale=self.locale))

    def day(self, value: str) -> str:
        """Return a day in ISO 8601 (2002-01-13, also with a time) in the locale's format; other text is unchanged."""
        moment = moment_of(value[:10]) if DAY.match(value) else None
        return format_date(moment.date(), "long", locale=self.locale) if moment else value


def catalogue(code: str) -> Catalog:
    """Return all messages of a language; its files are read in the order of their names."""
    merged = Catalog(locale=code)
    for path in sorted((FOLDER / code).glob("*.po")):
        with path.open("rb") as file:
            part = read_po(file, locale=code, abort_invalid=True)
        for message in part:
            if message.id:
                merged[message.id] = message
    return merged


def _compiled(code: str) -> io.BytesIO:
    buffer = io.BytesIO()
    write_mo(buffer, catalogue(code))
    buffer.seek(0)
    return buffer


@functools.cache
def language(code: str) -> ReaderLanguage:
    """Return the language with this code, a key of LANGUAGES; its catalogues are read once."""
    return ReaderLanguage(code)


def choose(wanted: str, accepted: str) -> ReaderLanguage:
    """Return the reader's choice of language, or the best match of an Accept-Language header, or English."""
    if wanted in LANGUAGES:
        return language(wanted)
    preferred = [tag.replace("-", "_") for tag in _by_quality(accepted)]
    # A wildcard or an unknown language does not make us try the next one: English is the source language.
    return language(negotiate_locale(preferred, list(LANGUAGES)) or SOURCE)


def _by_quality(header: str) -> list[str]:
    """Return the tags of an Accept-Language header (RFC 9110, 12.5.4), the most preferred first."""
    ranked = []
    for part in header[:1000].split(","):
        tag, _, quality = part.strip().partition(";")
        try:
            weight = float(quality.partition("=")[2]) if quality else 1.0
        except ValueError:
            continue
        if tag.replace("-", "").isalnum() and weight > 0:
            ranked.append((-weight, tag))
    return [tag for _, tag in sorted(ranked, key=lambda pair: pair[0])]
