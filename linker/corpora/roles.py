"""Guess the role of each column of a table: by its content, and by its name unless the content contradicts it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from linker.corpora.dates import date_formats

Role = Literal["id", "title", "text", "date", "url", "author", "language"]

NAMES: dict[Role, str] = {
    "id": r"_?id|.*[_ -]id|uuid|guid|key|kennung|#|((post|tweet|article|artikel|beitrag|row|record|item|serial|lfd\.?|"
    r"laufende)[_ -]*)?(nr|no|num(mer|ero|éro)?|number)\.?",
    "title": r"title|titel|titre|t[ií]tulo|headline|heading|schlagzeile|überschrift|subject|betreff|claim|statement|"
    r"behauptung|aussage|affirmation|afirmaci[oó]n",
    "text": r"(full|.*[_ -])?text|texte|texto|body|contents?|inhalt|contenu|contenido|message|nachricht|tweet|post|"
    r"beitrag|description|beschreibung|abstract|summary|caption",
    "date": r"date.*|.*[_ -](date|at|time|on)|datum|fecha|time(stamp)?|zeit|created|published|day|tag|veröffentlicht.*",
    "url": r"url|link|uri|href|permalink|.*[_ -](url|link)|adresse|web",
    "author": r"author|autor(in)?|auteur|user.*|nutzer.*|usuario|screen[_ -]?name|handle|by|von|account|from|creator|"
    r"name|source|publisher",
    "language": r"lang|language|sprache|langue|idioma|lingua|locale",
}
LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z]{2,4})?")
URL = re.compile(r"https?://\S+|www\.\S+")
NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
MACHINE_ID = re.compile(r"\d{5,}|[0-9a-fA-F-]{8,}|[A-Za-z]{1,8}[-_:]?\d+")
ALIEN = re.compile(
    r"(user|author|account|parent|thread|conversation|reply|in_reply_to|quoted|retweet\w*|source|place)[_ -]id"
)
EXACT = {"id", "_id"}  # names that take precedence over user_id and the like
SHARE = 0.9  # minimum share of the non-empty values that must match the role
REPEATED = 0.01  # maximum share of repeated values among ids, apart from one


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name, its values in a sample (including empty ones), and the non-empty values."""

    name: str
    values: Sequence[str]

    @property
    def filled(self) -> list[str]:
        """The values that are not empty."""
        return [value for value in self.values if value.strip()]

    def has_name_of(self, role: Role) -> bool:
        """Return whether the name is typical of columns with this role."""
        return bool(re.fullmatch(NAMES[role], self.name.strip().lower()))

    def mostly(self, looks: Callable[[str], object]) -> bool:
        """Return whether most of the values match; False if all are empty."""
        filled = self.filled
        return bool(filled) and sum(bool(looks(value.strip())) for value in filled) >= SHARE * len(filled)

    @property
    def words(self) -> float:
        """The mean number of words in the non-empty values."""
        return sum(len(value.split()) for value in self.filled) / max(len(self.filled), 1)


def likely(header: Sequence[str], role: Role) -> str | None:
    """Return the only column whose name is typical of a role, or None: "Tweet ID" or "post_id", but not "user_id"."""
    names = [n for n in header if Column(n, ()).has_name_of(role) and not ALIEN.fullmatch(n.strip().lower())]
    exact = [name for name in names if name.strip().lower() in {*EXACT, role}]
    return next(iter(chosen)) if len(chosen := exact or names) == 1 else None


def guess_roles(table: Mapping[str, Sequence[str]]) -> dict[str, Role]:
    """Return the role of each column that has one, given samples of values by column; each role is given at most once.

    A column that is named like a role gets it only if its values fit, and then takes precedence over columns of which
    only the values fit.
    """
    columns = [Column(name, values) for name, values in table.items()]
    roles: dict[str, Role] = {}
    for role, fits, needs_name in RULES:
        free = [c for c in columns if c.name not in roles and fits(c)]
        by_content = [] if needs_name else [c for c in free if SURE[role](c)]
        by_name = [c for c in free if c.has_name_of(role)]
        if (
            role == "text" and by_content
        ):  # next to sentences, a column of codes is not text, whatever its name
            by_name = [c for c in by_name if c in by_content]
        if candidates := by_name or by_content:
            roles[max(candidates, key=PREFERENCE.get(role, _has_exact_name)).name] = role
    return roles


def _has_exact_name(column: Column) -> bool:
    return column.name.lower() in EXACT


def _repeats(column: Column) -> int:
    """Return how many values an earlier row has."""
    return len(column.values) - len(set(column.values))


def _is_id(column: Column) -> bool:
    """Return whether the values can be ids; a few may repeat by mistake, and their rows are left out later."""
    values, name = column.values, column.name.strip().lower()
    if ALIEN.fullmatch(name) or _repeats(column) > max(len(values) > 2, REPEATED * len(values)):
        return False
    sound = all(v and len(v) <= 200 and v.isprintable() and " " not in v for v in values)
    return bool(values) and sound and not column.mostly(URL.fullmatch)


def _is_consecutive(column: Column) -> bool:
    """Return whether the values are consecutive whole numbers, as in a spreadsheet that numbers its rows."""
    numbers = [int(value) for value in column.values if value.isdecimal()]
    return bool(numbers) and numbers == [*range(numbers[0], numbers[0] + len(column.values))]


def _is_text(column: Column) -> bool:
    return bool(column.filled) and not any(
        column.mostly(pattern.fullmatch) for pattern in (URL, NUMBER, LANGUAGE)
    )


def _is_date(column: Column) -> bool:
    return bool(date_formats(column.filled[:200]))


def _is_author(column: Column) -> bool:
    return column.mostly(lambda v: len(v) <= 80 and not NUMBER.fullmatch(v) and not URL.fullmatch(v))


# Role, check of the values, and whether the name must be typical, too. URLs, dates, languages and ids are assigned
# first, so that they are not taken for texts.
RULES: tuple[tuple[Role, Callable[[Column], bool], bool], ...] = (
    ("url", lambda c: c.mostly(URL.fullmatch), False),
    ("date", _is_date, False),
    ("language", lambda c: c.mostly(LANGUAGE.fullmatch), True),
    ("id", _is_id, False),
    ("text", _is_text, False),
    ("author", _is_author, True),
    ("title", _is_text, True),
)
# Requirements on the content of a column without a typical name, beyond the role's own.
SURE: dict[Role, Callable[[Column], bool]] = {
    "url": lambda _: True,
    "date": lambda c: not c.mostly(NUMBER.fullmatch),
    "id": lambda c: (
        len(c.values) > 1 and not _repeats(c) and (c.mostly(MACHINE_ID.fullmatch) or _is_consecutive(c))
    ),
    "text": lambda c: c.words >= 3,
}
# Which of several suitable columns gets a role: by default, one with an exact name.
PREFERENCE: dict[Role, Callable[[Column], Any]] = {
    "id": lambda c: (not _repeats(c), _has_exact_name(c)),
    "text": lambda c: c.words,
}
