"""Detect the format of a file: its kind by its name, a table's encoding and column delimiter by the file's bytes."""

import codecs
import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal

from indexes.errors import Reason
from linker.base.errors import InputError
from linker.base.lines import DamagedInputError, read_lines
from linker.corpora.records import Columns, is_utf8

Kind = Literal["jsonl", "csv", "tsv", "text", "xlsx", "references", "asreview"]
KINDS: dict[str, Kind] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv", ".txt": "text",
    ".xlsx": "xlsx", ".xlsm": "xlsx", ".xls": "xlsx", ".ods": "xlsx",
    ".ris": "references", ".nbib": "references", ".asreview": "asreview",
}  # fmt: skip
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
SEPARATOR = re.compile(r'"?sep=(.)"?\r?')  # a first line that names the delimiter for Excel
SAMPLE, SAMPLE_BYTES = 200, 1 << 20  # maximum number of lines and bytes used to guess the delimiter
RARE = 10  # a file counts as damaged UTF-8 if it has at most this many invalid lines per valid non-ASCII line
ENOUGH = 10  # with fewer invalid lines, so does a file in which no other encoding is detected
# Letters and marks as texts in Western encodings use them. An encoding is likely if it gives these letters next to
# ASCII letters; the omitted ones (ÿ þ ð × ÷) are rare, and are often misread bytes of other encodings. A capital after
# a small letter (MŠrz) is evidence against the encoding, as is a mark between letters, except the apostrophe.
LETTERS = re.compile("[A-Za-z][À-ÖØ-öø-üŠšŒœŽžŸßÝý]|[À-ÖØ-öø-üŠšŒœŽžŸßÝý][A-Za-z]")
MARKS = re.compile("[€‚„…†‡‰‹›‘’“”•–—™¡£§©«®°²³·»¼½¾¿]")
ODD = re.compile("[a-zß-öø-ü][À-ÖØ-ÞŠŒŽŸ]|[a-z][€‚„†‡‰‹›“•–™¡£§©«®°²³»¼½¾¿¸ˆ](?=[a-z])|[a-zà-ü]§")
WESTERN = ("cp1252", "mac_roman")  # the more likely one first
ENCODINGS = (
    "utf-8", "utf-16", *WESTERN, "cp1250", "cp1251", "koi8-r", "cp1253", "cp1254", "cp1255", "cp1256",
    "gb18030", "big5", "shift_jis", "euc_kr",
)  # fmt: skip
OLD_WORKBOOK, ARCHIVE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"PK\x03\x04"  # signatures of .xls and .xlsx
OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis."  # at byte 30 of .ods
BINARY = re.compile(rb"[\0-\x08\x0e-\x1f]")


class UnknownEncodingError(InputError):
    """The encoding of a table cannot be determined from its bytes."""


def guess_encoding(path: Path) -> str:
    """Return the encoding of a file: a UTF, or one in which Excel writes CSV, "cp1252" or (on old Macs) "mac_roman".

    All bytes are examined. A file that is UTF-8 except for some invalid lines counts as UTF-8; these lines go to the
    quarantine. Raises InputError, with the remedy, if the encoding cannot be determined: otherwise most rows would be
    lost.
    """
    valid = wrong = 0  # non-ASCII lines that are valid UTF-8, and invalid lines
    # Per encoding: invalid lines that are plausible in it, and the evidence for it.
    western, points = dict.fromkeys(WESTERN, 0), dict.fromkeys(WESTERN, 0)
    with contextlib.suppress(DamagedInputError):  # reported when the file is read
        if wide := _utf16(path):
            return wide
        for _, raw, _ in read_lines(path):
            if raw.isascii():
                continue
            if is_utf8(raw):
                valid += 1
            else:
                wrong += 1
                for name in WESTERN:
                    characters, good = _western(raw, name)
                    western[name] += 2 * good >= characters
                    points[name] += good
    if wrong <= RARE * valid:
        return "utf-8"
    likeliest = max(WESTERN, key=points.__getitem__)
    if 2 * western[likeliest] > wrong:
        return likeliest
    if wrong < ENOUGH:
        return "utf-8"
    raise UnknownEncodingError(
        f"{path} is not UTF-8, and its encoding cannot be detected: name it with `encoding`"
    )


def _utf16(path: Path) -> str:
    """Return the kind of UTF-16, by the BOM or because every other byte at the start is zero; else ""."""
    line = next(read_lines(path, 400, "iso-8859-1"), (1, b"", 0))[1]
    first = line.decode(errors="ignore").encode("iso-8859-1")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for even, odd, name in ((first[::2], first[1::2], "utf-16-le"), (first[1::2], first[::2], "utf-16-be")):
        if len(first) > 3 and not even.count(0) and 2 * odd.count(0) > len(odd):
            return name
    return ""


def _western(raw: bytes, encoding: str) -> tuple[int, int]:
    """Return how many non-ASCII characters a line has in an encoding, and how many suggest that encoding."""
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        return 1, 0
    good = len(LETTERS.findall(text)) + len(MARKS.findall(text)) - 2 * len(ODD.findall(text))
    return sum(not c.isascii() for c in text), good


def check_encoding(name: str) -> str:
    """Return the name of an encoding. Raises InputError if no text encoding has that name."""
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


def guess_delimiter(lines: Sequence[str], header_row: int | None = None) -> str:
    """Return the column delimiter in the first lines of a table: comma, semicolon, tab or vertical bar.

    It is the delimiter with which most records have as many fields as the header; on a tie, the one that gives more
    columns; a comma if none gives two. `header_row` is the header's line. If it is not known and fewer than half of the
    records have as many fields as the first line, that line may be a title: then the delimiter with which most records
    have the same number of fields is returned.
    """
    found = SEPARATOR.fullmatch(lines[0]) if lines else None
    if found:
        return found[1]
    lines = lines[header_row - 1 :] if header_row else lines
    best, delimiter, usual, mode = (0.0, 0), ",", (0.5, 0), ""
    for candidate in DELIMITERS:
        counts = [len(fields) for fields in _parse(lines, candidate) if any(map(str.strip, fields))]
        if counts and counts[0] > 1:
            rating = (Counter(counts)[counts[0]] / len(counts), counts[0])
            if rating > best:
                best, delimiter = rating, candidate
        ((most, times),) = Counter(counts).most_common(1) or [(0, 0)]
        if most > 1 and (times / len(counts), most) > usual:
            usual, mode = (times / len(counts), most), candidate
    return mode if mode and not header_row and best[0] < 0.5 else delimiter


def format_of(path: Path, kind: Kind, columns: Columns) -> Columns:
    """Return `columns` with the table's encoding and delimiter, which are guessed if not given.

    XLSX has neither, so both are None. Raises InputError if the encoding is unknown or cannot be guessed.
    """
    if kind not in ("csv", "tsv"):
        return replace(columns, encoding=None, delimiter=None) if kind == "xlsx" else columns
    encoding = check_encoding(columns.encoding) if columns.encoding else guess_encoding(path)
    delimiter = "\t" if kind == "tsv" else columns.delimiter
    delimiter = delimiter or guess_delimiter(head(path, encoding), columns.header_row)
    return replace(columns, encoding=encoding, delimiter=delimiter)


def kind_of(name: str) -> Kind | None:
    """Return the kind of a file by its name, or None."""
    return KINDS.get(Path(name.lower().removesuffix(".gz")).suffix)


def real_kind(path: Path, kind: Kind) -> Kind:
    """Return a table's kind by its first bytes if they contradict its name. Raises InputError for .xls and .ods."""
    if kind not in ("csv", "tsv", "xlsx") or not path.is_file():
        return kind
    with path.open("rb") as file:
        start = file.read(SAMPLE)
    if start.startswith(OLD_WORKBOOK):
        text = f"{path} is an old Excel workbook (.xls), or has a password: save it as .xlsx without one, or as .csv"
        raise InputError(Reason(text, "old-workbook", name=path.name))
    if start[30:].startswith(OPEN_DOCUMENT):
        text = f"{path} is an OpenDocument file, which linker cannot read: save it as .xlsx or .csv"
        raise InputError(Reason(text, "other-kind", name=path.name))
    if start.startswith(ARCHIVE):
        return "xlsx"
    return "csv" if kind == "xlsx" and start and not BINARY.search(start) and len(start) > 8 else kind


def _parse(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter)
    try:
        yield from reader
    except csv.Error:
        return


def head(path: Path, encoding: str | None, count: int = SAMPLE) -> list[str]:
    """Return the first lines of a file, decoded; undecodable bytes become U+FFFD."""
    lines = islice(read_lines(path, encoding=encoding), count)
    return [raw.decode(errors="replace") for _, raw, _ in lines]
