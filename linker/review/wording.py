"""Translatable sentences with numbers: English strings that keep their template and values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Protocol, TypeAlias

DOCUMENTS, PAIRS = "documents", "pairs"

# A count (int), a share from 0 to 1 that is shown in whole per cent (float), a number with exactly the digits to be
# shown (Decimal), a string that stays as it is (str), or a Sentence, which is translated, too.
Value: TypeAlias = "int | float | Decimal | str | Sentence"
Show: TypeAlias = Callable[[int | float | Decimal], str]  # formats a value in a language


class Messages(Protocol):
    """A catalogue of messages, as gettext's and Babel's translations are."""

    def gettext(self, message: str, /) -> str:
        """Return the message in the catalogue's language."""

    def ngettext(self, one: str, many: str, count: int, /) -> str:
        """Return the form of a message for this count."""


def message(text: str) -> str:
    """Return the text unchanged; the call marks it for translation, which happens later."""
    return text


class Sentence(str):
    """A text in English; `render` returns it in another language.

    `template` has placeholders `%(name)s` for `values`; `one` is its singular form if the form depends on the value
    `num`. A sentence from `joined` has `parts` and the separator `between` instead. Without either, it is a text that
    is not translated.
    """

    template: str = ""
    one: str = ""
    values: Mapping[str, Value] = {}
    parts: tuple[Sentence, ...] = ()
    between: str = ""

    def render(self, messages: Messages, show: Show) -> str:
        """Return the sentence in the language of `messages`, its numbers formatted by `show`."""
        if self.parts:
            parts = (part.render(messages, show) for part in self.parts)
            return _render(self.between, messages, show).join(parts)
        if not self.template:
            return str(self)
        return _filled(self.one, self.template, self.values, messages, show)

    def about(self, what: str) -> Sentence:
        """Return the sentence with another noun for documents: PAIRS, or, in English only, a caller's, such as "posts".

        A noun from the caller cannot be declined, so other languages have no placeholder for it.
        """
        if what == DOCUMENTS:
            return self
        if self.parts:
            return joined((part.about(what) for part in self.parts), self.between)
        values = {n: v.about(what) if isinstance(v, Sentence) else v for n, v in self.values.items()}
        if not self.template:
            return self
        return _sentence(renamed(self.one, what), renamed(self.template, what), values)


def say(template: str, /, **values: Value) -> Sentence:
    """Return a sentence from its template, which is a message of the catalogues."""
    return _sentence("", template, values)


def say_many(one: str, many: str, /, num: int, **values: Value) -> Sentence:
    """Return a sentence whose form depends on the count `num`."""
    return _sentence(one, many, {"num": num, **values})


def joined(parts: Iterable[Sentence], between: str = " ") -> Sentence:
    """Return sentences as one, separated by `between` (which may be a Sentence)."""
    parts = tuple(parts)
    sentence = Sentence(between.join(parts))
    sentence.parts, sentence.between = parts, between
    return sentence


def renamed(message: str, what: str) -> str:
    """Return a message about documents, reworded for other units; the catalogues also contain it for pairs."""
    text = message.replace(DOCUMENTS, what.replace("%", "%%"))
    return text.replace("document", "pair") if what == PAIRS else text


class _Source:
    def gettext(self, message: str, /) -> str:
        return message

    def ngettext(self, one: str, many: str, count: int, /) -> str:
        return one if count == 1 else many


def _sentence(one: str, template: str, values: Mapping[str, Value]) -> Sentence:
    sentence = Sentence(_filled(one, template, values, _Source(), _in_english))
    sentence.one, sentence.template, sentence.values = one, template, values
    return sentence


def _filled(one: str, template: str, values: Mapping[str, Value], messages: Messages, show: Show) -> str:
    shown = {
        name: _render(value, messages, show) if isinstance(value, str) else show(value)
        for name, value in values.items()
    }
    count = values.get("num")
    if one and isinstance(count, int):
        return messages.ngettext(one, template, count) % shown
    return messages.gettext(template) % shown


def _render(text: str, messages: Messages, show: Show) -> str:
    return text.render(messages, show) if isinstance(text, Sentence) else text


def _in_english(value: int | float | Decimal) -> str:
    if isinstance(value, float):
        return f"{value:.0%}"
    return f"{value:,}" if isinstance(value, int) else str(value)
