"""Filters over the metadata of documents: one small grammar for the command line, Python, HTTP and the web page.

A condition is a field, an operator and values:

    lang=en           the field has this value, compared as a string
    lang=en|de        the field has one of these values, as with `lang=` repeated; \\| is a literal bar in a value
    lang!=en|de       the field has none of these values, or the document lacks the field
    likes>100         also >=, < and <=, with a number or an ISO 8601 date (comparing.py); two conditions form a range

A field with several values satisfies = and ranges if any of its values does. All conditions must hold. They are written
as a string with one condition per line, as a list of conditions, or as a mapping from fields to values, to lists of
values, or to operators with values: {"lang": ["en", "de"], "likes": {">": 100}}. A mapping's values are taken
literally.
"""

from __future__ import annotations

import datetime
import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from indexes.comparing import COMPARE, Misfit, comparable, compares, iso_of
from indexes.errors import BadFilterError

Mask = npt.NDArray[np.bool_]  # a flag for each row
Metadata = Mapping[str, Any]
Where = str | Sequence[str] | Mapping[str, Any]  # the input of `Filter.parse`

SIGNS = ("!=", ">=", "<=", "=", ">", "<")
LONGEST_NAME = 100  # maximum length of a field's name, in characters, if the field is searched by ranges
_CONDITION = re.compile(rf"(.*?)({'|'.join(SIGNS)})(.*)", re.DOTALL)
_UNSTORABLE = re.compile("[\x1f\ud800-\udfff]")  # the separator of a term's parts, and lone surrogates
_BAR = re.compile(r"(?<!\\)\|")


def filter_values(value: Any) -> tuple[str, ...]:
    """Return the strings by which a metadata value can be filtered: one, or one for each element of a list."""
    if value is None or isinstance(value, Mapping):
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Iterable):
        return tuple(s for v in value for s in filter_values(v))
    return (json.dumps(value, default=str),)


def has_order(field: str) -> bool:
    """Return whether a metadata field of this name supports ranges, which requires that every backend can store it."""
    return len(field) <= LONGEST_NAME and not _UNSTORABLE.search(field)


class Condition(NamedTuple):
    """One condition: `sign` is one of SIGNS; a range has exactly one value in `values`."""

    field: str
    values: tuple[str, ...]
    sign: str = "="

    @property
    def is_range(self) -> bool:
        """Whether values are compared by order."""
        return self.sign in COMPARE

    def check(self) -> None:
        """Raise BadFilterError if this is a range that cannot be compared."""
        if not self.is_range:
            return
        if len(self.values) != 1 or not comparable(self.values[0]):
            iso = iso_of(self.values[0]) if len(self.values) == 1 else ""
            raise BadFilterError(
                f"cannot compare {self.field!r} with {'|'.join(self.values)!r}: {self.sign} takes one number "
                f"(likes>100) or ISO 8601 date ({f'{self.field}{self.sign}{iso}' if iso else 'date>=2021-01-31'})"
            )
        if not has_order(self.field):
            raise BadFilterError(
                f"the field {self.field[:LONGEST_NAME]!r} cannot have a range: its name is longer than {LONGEST_NAME} "
                "characters or contains characters that cannot be stored"
            )

    def accepts(self, metadata: Metadata) -> bool:
        """Return whether a document with this metadata satisfies the condition: the slow, obvious definition."""
        values = filter_values(metadata.get(self.field))
        if self.is_range:
            return any(compares(value, self.sign, self.values[0]) for value in values)
        return set(values).isdisjoint(self.values) == (self.sign == "!=")


@dataclass(frozen=True, slots=True)
class Filter:
    """A conjunction of conditions on metadata; a plain pair of a field and values is a condition with =."""

    conditions: tuple[Condition | tuple[str, tuple[str, ...]], ...]

    def __post_init__(self) -> None:
        for condition in self.all:
            condition.check()

    @property
    def all(self) -> tuple[Condition, ...]:
        """The conditions, each with its operator."""
        return tuple(Condition(*condition) for condition in self.conditions)

    @property
    def fields(self) -> tuple[str, ...]:
        """The distinct fields that the conditions name."""
        return tuple(dict.fromkeys(condition.field for condition in self.all))

    @classmethod
    def parse(cls, where: Filter | Where | None) -> Filter | None:
        """Return the filter that a string, a list or a mapping describes, or None if there are no conditions.

        The grammar is that of the module: `lang=en|de`, `lang!=en`, `likes>100`, `date>=2021-01-31`. A repeated
        `field=` accepts any of its values. Raises BadFilterError if a condition cannot be parsed or compared.
        """
        if where is None or isinstance(where, Filter):
            return where
        conditions = list(_of_mapping(where) if isinstance(where, Mapping) else map(_read, _texts(where)))
        accepted: dict[str, list[str]] = {}
        for field, values, sign in conditions:
            if sign == "=":
                accepted.setdefault(field, []).extend(values)
        same = [Condition(field, tuple(values)) for field, values in accepted.items()]
        found = (*same, *(condition for condition in conditions if condition.sign != "="))
        return cls(found) if found else None

    def accepts(self, metadata: Metadata) -> bool:
        """Return whether a document with this metadata passes: the slow, obvious definition."""
        return all(condition.accepts(metadata) for condition in self.all)


@dataclass(frozen=True, slots=True, eq=False)
class RowFilter(Filter):
    """A filter that also requires a row to be in `rows` (bool [rows]); equal only to itself."""

    rows: Mask

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def _texts(where: str | Sequence[str]) -> Sequence[str]:
    """Return the conditions as separate texts; a string has one per line."""
    return [line for line in where.split("\n") if line.strip()] if isinstance(where, str) else where


def _read(text: str) -> Condition:
    match = _CONDITION.fullmatch(text) if isinstance(text, str) else None
    if match is None or not match[1].strip():
        raise BadFilterError(
            f"cannot read the filter {text!r}: write field=value, field!=value or, for numbers and dates, field>=value"
        )
    field, sign, value = match.groups()
    values = [value] if sign in COMPARE else _BAR.split(value)
    return Condition(field.strip(), tuple(one.replace("\\|", "|").strip() for one in values), sign)


def _of_mapping(where: Mapping[str, Any]) -> Iterator[Condition]:
    for field, given in where.items():
        for sign, value in (given if isinstance(given, Mapping) else {"=": given}).items():
            if sign not in SIGNS or not isinstance(field, str):
                raise BadFilterError(
                    f"cannot read the filter on {field!r}: expected one of {' '.join(SIGNS)}, got {sign!r}"
                )
            values = [*value] if _holds_others(value) and not isinstance(value, Mapping) else [value]
            if any(_holds_others(one) for one in values):
                raise BadFilterError(
                    f"cannot read the filter on {field!r}: {sign} takes a string, a number or a date, or a list of "
                    "these without nested lists or objects"
                )
            yield Condition(field, tuple(text for one in values for text in _literal(one)), sign)


def _literal(value: Any) -> tuple[str, ...]:
    return (value.isoformat(),) if isinstance(value, datetime.date) else filter_values(value)


def _holds_others(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def misfit_text(condition: Condition, misfit: Misfit) -> str:
    """Return a remark about values whose format prevents a match. Raises BadFilterError if that applies to all."""
    field, bound, example = condition.field, condition.values[0], misfit.example
    if misfit.kind and misfit.odd == misfit.values:
        form = "an ISO 8601 date (2021-01-31)" if misfit.kind == "date" else f"a {misfit.kind}"
        raise BadFilterError(
            f"cannot compare {field!r} with {bound!r}: the field holds {misfit.kind}s, such as {example!r}: "
            f"compare it with {form}"
        )
    iso = iso_of(example)
    written = f"write dates as YYYY-MM-DD in the corpus{f' (here {iso})' if iso else ''} and add it again"
    return (
        f"{misfit.odd:,} of {misfit.values:,} values of {field!r} cannot be compared with {bound!r} and never match, "
        f"such as {example[:LONGEST_NAME]!r}: {written}"
    )


def unknown_field(name: str, fields: Sequence[str]) -> BadFilterError:
    """Return the error for a field that no document has; `fields` are those of the index."""
    if not fields:
        return BadFilterError(
            f"no document has the field {name!r}: the documents of this index have no metadata"
        )
    near = difflib.get_close_matches(name.lower(), [field.lower() for field in fields], 1, 0.6)
    named = [field for field in fields if field.lower() in near][:1]
    hint = f"did you mean {named[0]!r}?" if named else f"the index has {', '.join(map(repr, fields[:20]))}"
    return BadFilterError(f"no document has the field {name!r}: {hint}")
