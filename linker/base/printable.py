"""Make text safe to show: no character of a document moves the cursor, or hides or reorders the text around it."""

import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

import orjson

BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # directional marks, embeddings, overrides and isolates
SEPARATORS = "\u2028\u2029"
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{BIDI}{SEPARATORS}\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile(f"[\x7f-\x9f{BIDI}{SEPARATORS}]")  # orjson escapes other unsafe characters
# The password in a cluster's address may contain any character; `Path` turns the two slashes of an address into one.
_CREDENTIALS = re.compile(r"((?:elastic|opensearch)\+\w+:/{1,2})\S*@|(\w:/{1,2})[^\s/]*@", re.IGNORECASE)
_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML does not allow
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_PICTURES = 0x2400  # ␀, followed by the pictures of the other control characters
_DELETE, _PICTURE_OF_DELETE = "\x7f", "\u2421"


def printable(text: str) -> str:
    """Return a text with a visible character in place of each one that a terminal would interpret.

    ASCII controls except newline and tab become their pictures (ESC is ␛); C1 controls, directional formatting
    characters, line and paragraph separators and bytes that are not UTF-8 become �. The length stays the same.
    """
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_visible, text)


def _visible(match: re.Match[str]) -> str:
    if match[0] == _DELETE:
        return _PICTURE_OF_DELETE
    return chr(_PICTURES + ord(match[0])) if match[0] < " " else "\ufffd"


def on_one_line(text: str) -> str:
    """Return a printable text with one space in place of each run of line breaks and tabs."""
    return printable(_BREAKS.sub(" ", text))


def without_credentials(text: str) -> str:
    """Return a message with `…` in place of the user and password of each address in it."""
    return _CREDENTIALS.sub(r"\1\2…@", text) if "@" in text else text


def json_text(value: Any) -> str:
    """Return a value as one line of JSON, without a newline; unsafe characters become \\uXXXX."""
    data = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    return _UNSAFE_IN_JSON.sub(lambda m: f"\\u{ord(m[0]):04x}", data.decode())


def spreadsheet_cell(text: str) -> str:
    """Return a text as a TSV cell that a spreadsheet shows and never evaluates: ' is put before = + - @."""
    flat = on_one_line(text)
    return f"'{flat}" if text.startswith(_FORMULA) or flat.startswith(_FORMULA) else flat


class PrintableStream:
    """A text stream that makes all text printable and delegates everything else to the stream that it wraps."""

    def __init__(self, stream: TextIO, *, messages: bool = False) -> None:
        """`stream`: the stream to wrap; `messages`: its text is about the program, so passwords are removed."""
        self._stream, self._messages = stream, messages

    def write(self, text: str) -> int:
        """Write the text as `printable` shows it, messages without passwords; return its length."""
        return self._stream.write(printable(without_credentials(text) if self._messages else text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write the texts one after another."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def guard_output() -> None:
    """Make everything that this process prints printable, including tracebacks and warnings of other libraries."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, PrintableStream):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # escapes what the terminal cannot encode
            setattr(sys, name, cast(TextIO, PrintableStream(stream, messages=name == "stderr")))


def unguarded(stream: TextIO | PrintableStream) -> TextIO:
    """Return the wrapped stream, for callers that move the cursor themselves, such as progress bars."""
    return stream._stream if isinstance(stream, PrintableStream) else stream


def print_for_programs(text: str | bytes) -> None:
    """Print a result in a machine-readable format: exact UTF-8 to a pipe or file, printable text to a terminal."""
    if sys.stdout.isatty():
        sys.stdout.write(text if isinstance(text, str) else text.decode("utf-8", "surrogateescape"))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


def json_kind(value: object) -> str:
    """Return JSON's name for the type of a value that is not an object."""
    names = {list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return names.get(type(value), "null")
