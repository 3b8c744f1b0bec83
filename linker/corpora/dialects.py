"""Tell how a table is written: its encoding, and what separates its columns. Both are guessed from the file's bytes."""

from __future__ import annotations

import codecs
import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from linker.corpora.records import is_utf8
from linker.errors import InputError
from linker.lines import DamagedInputError, read_lines

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
SEPARATOR = re.compile(r'"?sep=(.)"?\r?')  # a first line by which Excel is told the delimiter
SAMPLE, SAMPLE_BYTES = 200, 1 << 20  # lines, at most, and bytes from which the delimiter is guessed
RARE = 10  # lines that are not UTF-8 for one that is, up to which a file counts as damaged UTF-8
ENOUGH = 10  # lines that are not UTF-8, from which on a file counts as one of another encoding
# Letters and marks of Windows-1252 as texts use them. Beside ASCII letters, the former speak for that encoding; those
# left out (ÿ þ ð × ÷) are rare, and what other encodings' bytes become.
LETTERS = re.compile("[A-Za-z][À-ÖØ-öø-üŠšŒœŽžŸßÝý]|[À-ÖØ-öø-üŠšŒœŽžŸßÝý][A-Za-z]")
MARKS = re.compile("[€‚„…†‡‰‹›‘’“”•–—™¡£§©«®°²³·»¼½¾¿]")


def guess_encoding(path: Path) -> str:
    """Return "utf-8", "utf-16" or "cp1252" (Windows-1252, in which Excel saves CSV), from all bytes of the file.

    Lines that are not UTF-8 in a file that otherwise is are left to the quarantine. Raises InputError for a file in no
    encoding that can be told, with the remedy: losing most of its rows would help nobody.
    """
    valid = wrong = plausible = (
        0  # lines beyond ASCII that are UTF-8, those that are not, the Western ones of these
    )
    with contextlib.suppress(DamagedInputError):  # whoever reads the file is told of it
        if wide := _utf16(path):
            return wide
        for _, raw, _ in read_lines(path):
            if raw.isascii():
                continue
            if is_utf8(raw):
                valid += 1
            else:
                wrong += 1
                plausible += _is_western(raw)
    if wrong <= RARE * valid:
        return "utf-8"
    if 2 * plausible > wrong:
        return "cp1252"
    if wrong < ENOUGH:
        return "utf-8"
    raise InputError(f"{path} is not UTF-8, and its encoding cannot be told: name it with --encoding")


def _utf16(path: Path) -> str:
    """Return the kind of UTF-16 that a file begins with, by its mark or since every other byte is zero; else empty."""
    line = next(read_lines(path, 400, "iso-8859-1"), (1, b"", 0))[1]
    first = line.decode(errors="ignore").encode("iso-8859-1")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for even, odd, name in ((first[::2], first[1::2], "utf-16-le"), (first[1::2], first[::2], "utf-16-be")):
        if len(first) > 3 and not even.count(0) and 2 * odd.count(0) > len(odd):
            return name
    return ""


def _is_western(raw: bytes) -> bool:
    try:
        text = raw.decode("cp1252")
    except UnicodeDecodeError:
        return False
    high = sum(not c.isascii() for c in text)
    return 2 * (len(LETTERS.findall(text)) + len(MARKS.findall(text))) >= high


def check_encoding(name: str) -> str:
    """Return the name of an encoding. Raises InputError where there is none of that name that decodes text."""
    try:
        codecs.lookup(name)
        b"a".decode(name, "ignore").encode()
    except (LookupError, UnicodeError, AttributeError, ValueError, TypeError):
        raise InputError(f"there is no encoding {name!r}: try utf-8, utf-16, cp1252 or cp1251") from None
    return name


def check_delimiter(text: str) -> str:
    r"""Return a delimiter of one character; "tab" and "\t" stand for a tab. Raises InputError for any other text."""
    delimiter = {"tab": "\t", "\\t": "\t", **{name: sign for sign, name in DELIMITERS.items()}}.get(
        text, text
    )
    if len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise InputError(f"{text!r} cannot separate columns: give one character, or tab")
    return delimiter


def guess_delimiter(lines: Sequence[str]) -> str:
    """Return what separates the columns in the first lines of a table: comma, semicolon, tab or bar.

    The one by which most records have as many fields as the header, then the one that gives more columns; a comma where
    none gives two.
    """
    found = SEPARATOR.fullmatch(lines[0]) if lines else None
    if found:
        return found[1]
    best, delimiter = (0.0, 0), ","
    for candidate in DELIMITERS:
        counts = [len(fields) for fields in _parsed(lines, candidate) if fields]
        if counts and counts[0] > 1:
            rating = (Counter(counts)[counts[0]] / len(counts), counts[0])
            if rating > best:
                best, delimiter = rating, candidate
    return delimiter


def _parsed(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter)
    try:
        yield from reader
    except csv.Error:
        return


def head(path: Path, encoding: str | None, count: int = SAMPLE) -> list[str]:
    """Return the first lines of a file, decoded; what cannot be is shown as U+FFFD."""
    lines = islice(read_lines(path, encoding=encoding), count)
    return [raw.decode(errors="replace") for _, raw, _ in lines]
