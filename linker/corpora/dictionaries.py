"""Bilingual dictionaries in TSV, MUSE text, dictd (FreeDict) or CC-CEDICT; the content determines the format."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from linker.base.errors import InputError
from linker.base.lines import DamagedInputError, Line, read_lines
from linker.corpora import BadLine

LOOKED_AT = 50  # lines used to detect the format
LONGEST_GLOSS = 3  # words; longer glosses explain rather than translate
BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
CEDICT = re.compile(r"(\S+) (\S+) \[[^\]]*\]+ +/(.+)/\s*")
DICTD = re.compile(r"[^\t]+\t[A-Za-z0-9+/]+\t[A-Za-z0-9+/]+(?:\t.*)?")
NOTE = re.compile(r"\([^()]*\)|\[[^][]*\]|<[^<>]*>|\{[^{}]*\}")
NUMBER = re.compile(r"^\s*(?:\d+|[a-z])[.)]\s+")
PARTICLE = re.compile(r"^(?:to be|to|an?|the|sb|sth)\s+(?=\S)", re.IGNORECASE)
REMARK = re.compile(r"""^\s*(?:["“„]|(?:see|synonyms?|antonyms?|note|cross reference)\b.*:)""", re.IGNORECASE)

Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Pairs (foreign, English), the file's format, its skipped lines, and whether English comes first in it."""

    path: Path
    format: str
    pairs: tuple[Pair, ...]
    skipped: tuple[BadLine, ...] = ()
    turned: bool = False


def read_dictionary(path: Path) -> Dictionary:
    """Read a dictionary, plain or gzipped, in one of these formats:

    - TSV: `foreign TAB English`, one pair per line (further columns are ignored);
    - MUSE text: `foreign English`, separated by spaces;
    - dictd, as FreeDict ships it: NAME.index with NAME.dict or NAME.dict.dz next to it (any of them may be given);
    - CC-CEDICT: `traditional simplified [pinyin] /gloss/gloss/`; both scripts are kept.

    Lines that start with # are comments. Unusable lines are returned in `skipped`. Raises InputError if the file
    cannot be read or contains no pair.
    """
    path = _index_of(path)
    lines = (line for line in _until_damage(path) if isinstance(line, BadLine) or _has_content(line[1]))
    first = list(islice(lines, LOOKED_AT))
    format_ = _detect(path, [line[1] for line in first if not isinstance(line, BadLine)])
    split = _dictd_splitter(path) if format_ == "dictd" else SPLITTERS[format_]
    pairs: dict[Pair, None] = {}
    skipped: list[BadLine] = []
    for line in chain(first, lines):
        result = line if isinstance(line, BadLine) else _read(path, line, split)
        if isinstance(result, BadLine):
            skipped.append(result)
        else:
            pairs.update(dict.fromkeys(result))
    if not pairs:
        reason = f"; line {skipped[0].line}: {skipped[0].reason}" if skipped else ""
        raise InputError(f"{path}: contains no pair of words (read as {format_}{reason})")
    return Dictionary(path, format_, tuple(pairs), tuple(skipped))


class _UnusableError(Exception):
    """A line contains no pair; the text says why."""


def _until_damage(path: Path) -> Iterator[Line | BadLine]:
    try:
        yield from read_lines(path)
    except DamagedInputError as e:
        yield BadLine.of(path, e.line, e.reason, e.raw)


def _has_content(raw: bytes) -> bool:
    return bool(raw.strip()) and not raw.lstrip().startswith(b"#")


def _read(path: Path, line: Line, split: Callable[[str], list[Pair]]) -> list[Pair] | BadLine:
    number, raw, size = line
    try:
        pairs = split(raw.decode())
    except UnicodeDecodeError:
        return BadLine.of(path, number, "invalid UTF-8", raw, size)
    except _UnusableError as e:
        return BadLine.of(path, number, str(e), raw, size)
    return pairs


def _detect(path: Path, lines: list[bytes]) -> str:
    texts = [raw.decode(errors="replace") for raw in lines]

    def most(test: Callable[[str], object]) -> bool:
        return sum(bool(test(text)) for text in texts) * 2 > len(texts)

    if most(CEDICT.fullmatch):
        return "cedict"
    if most(DICTD.fullmatch) and (path.suffix == ".index" or _dictd_file(path)):
        return "dictd"
    return "tsv" if most(lambda text: "\t" in text) else "muse"


def _split_tab(text: str) -> list[Pair]:
    return [_pair(text.split("\t"), "a tab")]


def _split_blank(text: str) -> list[Pair]:
    return [_pair(text.split(), "a space")]


def _pair(columns: list[str], separator: str) -> Pair:
    foreign, english = ([c.strip() for c in columns] + ["", ""])[:2]
    if not foreign or not english:
        raise _UnusableError(f"not two words separated by {separator}")
    return foreign, english


def _split_cedict(text: str) -> list[Pair]:
    match = CEDICT.fullmatch(text.strip())
    if match is None:
        raise _UnusableError("not 'traditional simplified [pinyin] /gloss/'")
    words = dict.fromkeys((match[2], match[1]))
    return [(word, gloss) for word in words for part in match[3].split("/") for gloss in glosses(part)]


SPLITTERS = {"tsv": _split_tab, "muse": _split_blank, "cedict": _split_cedict}


def glosses(text: str) -> list[str]:
    """Return the translations of up to three words in a definition, without notes and leading particles."""
    while (bare := NOTE.sub(" ", text)) != text:
        text = bare
    parts = (PARTICLE.sub("", " ".join(part.split())) for part in re.split(r"[;,/]", text))
    return [part for part in parts if part and len(part.split()) <= LONGEST_GLOSS]


def _index_of(path: Path) -> Path:
    for suffix in (".dict.dz", ".dict"):
        if path.name.endswith(suffix):
            index = path.with_name(path.name.removesuffix(suffix) + ".index")
            if not index.exists():
                raise InputError(
                    f"{path}: the dictd index {index.name} is missing: put it into the same folder"
                )
            return index
    return path


def _dictd_file(index: Path) -> Path | None:
    stem = index.name.removesuffix(".gz").removesuffix(".index")
    candidates = (index.with_name(stem + suffix) for suffix in (".dict.dz", ".dict"))
    return next((path for path in candidates if path.is_file()), None)


def _dictd_splitter(index: Path) -> Callable[[str], list[Pair]]:
    file = _dictd_file(index)
    if file is None:
        raise InputError(
            f"{index}: the definitions are missing: put the .dict or .dict.dz file into the same folder"
        )
    content = b"".join(raw + b"\n" for _, raw, _ in read_lines(file))

    def split(text: str) -> list[Pair]:
        if not DICTD.fullmatch(text):
            raise _UnusableError("not 'headword TAB offset TAB length' of a dictd index")
        headword, start, length = text.split("\t")[:3]
        # Headwords such as "00databaseinfo" describe the dictionary itself.
        if headword.startswith("00"):
            return []
        begin, end = _number(start), _number(start) + _number(length)
        if end > len(content):
            raise _UnusableError(f"points to bytes {begin} to {end} of {file.name}, which has {len(content)}")
        return [(headword, gloss) for gloss in _definition(content[begin:end].decode(errors="replace"))]

    return split


def _number(digits: str) -> int:
    value = 0
    for digit in digits:
        value = value * 64 + BASE64.index(digit)
    return value


def _definition(text: str) -> Iterable[str]:
    """Yield the translations of a dictd entry, without the headword's line, remarks and examples."""
    for line in text.splitlines()[1:]:
        if not REMARK.match(line) and " - " not in line:
            yield from glosses(NUMBER.sub("", line))
