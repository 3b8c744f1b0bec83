"""Reading graded pairs of sentences from files."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from indexes.dtypes import Int64Array
from linker.base.errors import InputError
from linker.base.lines import DamagedInputError, read_lines
from linker.base.printable import json_kind

TOP = 5.0  # gold scores range from 0 (unrelated) to this (equivalent)
FIRST, SECOND = ("text1", "sentence1", "first"), ("text2", "sentence2", "second")
NAMES = {"id": ("_id", "id"), "first": FIRST, "second": SECOND, "gold": ("score", "gold", "label")}


def by_language(values: Sequence[str], what: str) -> dict[str, str]:
    """Return names by language from values like "NAME" (key "") or "de=NAME". Raises InputError."""
    found: dict[str, str] = {}
    for value in values:
        language, equals, name = value.partition("=")
        language, name = (language, name) if equals and language.isalpha() else ("", value)
        if language in found:
            raise InputError(
                f"{what} for {language or 'all languages'}: another one is already given; leave out {value!r}"
            )
        found[language] = name
    return found


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences; `gold` is their similarity from 0 to 5 as judged by people, None if nobody judged it."""

    id: str
    first: str
    second: str
    gold: float | None = None

    @property
    def texts(self) -> tuple[str, str]:
        """Both sentences."""
        return self.first, self.second


def read_pairs(path: Path, *, graded: bool = True, top: float = TOP) -> list[Pair]:
    """Read pairs: JSON lines with text1, text2, score (and _id), or a TSV file with these columns; both may be gzipped.

    `top` is the highest grade in the file; grades are scaled to 0–5. With `graded`, every pair must have a grade.
    Raises InputError, naming file and line, if a pair lacks a sentence, its grade is missing or out of range, or a
    line is not UTF-8 or has more fields than the header.
    """
    table = Path(path.name.lower().removesuffix(".gz")).suffix in (".tsv", ".txt")
    pairs: list[Pair] = []
    header: list[str] = []
    for number, where, line in filled_lines(path):
        if not table:
            fields = json_object(line, where)
        elif header:
            fields = _row(line, header, where)
        else:
            header = _header(line, where, graded)
            continue
        pairs.append(_pair(fields, where, number, graded, top))
    if not pairs:
        raise InputError(f"{path} is empty: it holds no pairs")
    return pairs


def groups(pairs: Sequence[Pair]) -> list[list[int]]:
    """Return the rows of the pairs by item: pairs that share a text or an id, even indirectly, form one item.

    Items are in the order of their first rows, as are the rows of an item.
    """
    parent = list(range(len(pairs)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    first: dict[tuple[str, str], int] = {}
    for row, pair in enumerate(pairs):
        for key in (("id", pair.id), ("text", pair.first), ("text", pair.second)):
            one, other = sorted((root(first.setdefault(key, row)), root(row)))
            parent[other] = one
    items: dict[int, list[int]] = {}
    for row in range(len(pairs)):
        items.setdefault(root(row), []).append(row)
    return list(items.values())


def folds_of(pairs: Sequence[Pair], count: int, seed: int) -> Int64Array:
    """Return each pair's fold, int64 [n], from 0: items in random order, each into the fold with the fewest pairs."""
    fold, sizes = np.zeros(len(pairs), np.int64), [0] * count
    items = groups(pairs)
    for number in np.random.default_rng([seed, 2]).permutation(len(items)).tolist():
        smallest = sizes.index(min(sizes))
        fold[items[number]] = smallest
        sizes[smallest] += len(items[number])
    return fold


def golds(pairs: Sequence[Pair]) -> list[float]:
    """Return the grades of the pairs. Raises InputError if a pair has none."""
    for pair in pairs:
        if pair.gold is None:
            raise InputError(f"the pair {pair.id!r} has no grade")
    return [pair.gold for pair in pairs if pair.gold is not None]


def filled_lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield number, "FILE:LINE" and content of each nonblank line of a plain or gzipped file. Raises InputError."""
    try:
        for number, raw, _ in read_lines(path):
            if raw.strip():
                where = f"{path}:{number}"
                yield number, where, _decode(raw, where)
    except DamagedInputError as e:
        raise InputError(str(e)) from None


def _decode(raw: bytes, where: str) -> str:
    try:
        return raw.decode().rstrip("\r\n")
    except UnicodeDecodeError as e:
        raise InputError(
            f"{where}: byte {e.start + 1} is not UTF-8: save the file as UTF-8, or convert it "
            "(iconv -f ENCODING -t UTF-8)"
        ) from None


def json_object(line: str, where: str) -> dict[str, Any]:
    """Return the JSON object on a line. Raises InputError, naming `where`, if there is no object."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as e:
        raise InputError(f"{where}: not JSON: {e}; each line must be one JSON object") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: a JSON {json_kind(value)}, not an object")
    return value


def _header(line: str, where: str, graded: bool) -> list[str]:
    """Return the names of a table's columns. Raises InputError if a required column is missing."""
    header = [name.strip() for name in line.split("\t")]
    for what in ("first", "second", *(["gold"] if graded else [])):
        if not {*header} & {*NAMES[what]}:
            raise InputError(
                f"{where}: no column is called {' or '.join(NAMES[what])}: a table begins with a line of names, "
                "separated by tabs, such as id, text1, text2, score"
            )
    return header


def _row(line: str, header: Sequence[str], where: str) -> dict[str, Any]:
    fields = line.split("\t")
    if len(fields) > len(header):
        raise InputError(
            f"{where}: {len(fields)} fields, but {len(header)} columns: is there a tab inside a sentence?"
        )
    return dict(zip(header, fields, strict=False))


def _pair(fields: dict[str, Any], where: str, number: int, graded: bool, top: float) -> Pair:
    first, second = (_side(fields, side, where) for side in ("first", "second"))
    gold = _field(fields, "gold")
    if gold in (None, ""):
        if graded:
            raise InputError(f"{where}: no grade: add a field score from 0 to {top:g}, or remove the pair")
        grade = None
    else:
        grade = _grade(gold, where, top)
    id_ = _field(fields, "id")
    return Pair(str(number if id_ in (None, "") else id_), first, second, grade)


def _side(fields: dict[str, Any], side: str, where: str) -> str:
    text = _field(fields, side)
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            f"{where}: the {side} sentence ({' or '.join(NAMES[side])}) is missing or empty: "
            "a pair needs two; correct the line or remove it"
        )
    return text


def _grade(value: Any, where: str, top: float) -> float:
    try:
        grade = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{where}: the score {value!r} is not a number") from None
    if not math.isfinite(grade) or not 0 <= grade <= top:
        raise InputError(
            f"{where}: the score {value!r} is outside 0–{top:g}: correct it, or give the highest grade with `top`"
        )
    return grade * TOP / top


def _field(fields: dict[str, Any], what: str) -> Any:
    return next((fields[name] for name in NAMES[what] if name in fields), None)
