"""Raw pages of one language from any format that `linker bucc prepare` reads, with their link targets."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from linker.base.errors import InputError
from linker.base.files import nonempty_lines
from linker.base.progress import bar
from linker.corpora import BadLine, read_corpus
from linker.crosslingual.pages.pages import split_languages
from linker.papers.bucc.compressed import REMEDY, reading
from linker.papers.bucc.dumps import DumpCounts, Site, WikiPage, is_dump, read_dump

LINK_FIELDS = ("langlinks", "links")
COLUMNS = ("ll_from", "ll_lang", "ll_title")
LONGEST = 1 << 16  # maximum size in bytes of a row or of a statement's head; a title has at most 255
_STRING = rb"(?:_binary\s+)?'([^'\\]*(?:(?:\\.|'')[^'\\]*)*)'"
_ROW = re.compile(rb"\s*\(\s*(\d+)\s*,\s*" + _STRING + rb"\s*,\s*" + _STRING + rb"\s*\)\s*([,;])", re.DOTALL)
_TABLE = re.compile(rb"CREATE TABLE[^(`]*`langlinks`\s*\((.*?)\)\s*ENGINE", re.DOTALL)
_COLUMN = re.compile(rb"^\s*`(\w+)`", re.MULTILINE)
_INSERT = re.compile(
    rb"(?:INSERT|REPLACE)(?:\s+IGNORE)?\s+INTO\s+`langlinks`\s*(?:\(([^)]*)\)\s*)?VALUES", re.IGNORECASE
)
_HEADS = re.compile(_INSERT.pattern + rb"|" + _TABLE.pattern, re.DOTALL | re.IGNORECASE)
_ESCAPE = re.compile(rb"\\(.)|''", re.DOTALL)
_ESCAPED = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}
Row = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class RawPages:
    """The files that hold the raw pages of one language: one file or folder, or the parts of a dump.

    `langlinks`: the dump's tables of interlanguage links; without them, links in the pages themselves count.
    """

    files: tuple[Path, ...]
    langlinks: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class RawPage:
    """A page as it was read: its markup, and the names (titles or ids) of the pages that it links to."""

    id: str
    title: str
    text: str
    links: tuple[str, ...]


@dataclass(slots=True)
class RawReading:
    """What was read of one language: counts, the namespaces of its wiki, and its redirects by name."""

    counts: DumpCounts = field(default_factory=DumpCounts)
    site: Site = field(default_factory=Site)
    redirects: dict[str, str] = field(default_factory=dict)
    articles: int = 0
    links: int = 0
    linked: int = 0
    is_dump: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for JSON; only those of a dump include redirects and other namespaces."""
        values = asdict(self.counts) if self.is_dump else {"unusable": self.counts.unusable}
        return values | {"articles": self.articles, "links": self.links, "linked": self.linked}


def described_by(
    source: Path | None,
    target: Path | None,
    languages: str | None,
    dumps: Sequence[str],
    langlinks: Sequence[str],
) -> tuple[tuple[str, str], tuple[RawPages, RawPages]]:
    """Return the codes of two languages and their pages, from two paths or from `CODE=FILE` of dumps and links.

    Several files of a code are the parts of one dump. Raises InputError if something is missing or superfluous.
    """
    files, tables = _by_code("--dump", dumps), _by_code("--langlinks", langlinks)
    if dumps and (source or target):
        raise InputError("give the pages in one way only: SOURCE and TARGET, or one --dump for each language")
    codes = split_languages(languages) if languages else tuple(files)
    if dumps and set(files) != set(codes):
        raise InputError(f"--dump names {', '.join(files)}, but --languages {languages}: they have to agree")
    if source and target and languages:
        files = {code: (path,) for code, path in zip(codes, (source, target), strict=True)}
    if len(files) != 2 or len(codes) != 2:
        raise InputError(
            "two languages are needed: SOURCE and TARGET with --languages fr-en, or --dump fr=FILE --dump en=FILE"
        )
    if unknown := set(tables) - set(codes):
        raise InputError(
            f"--langlinks names {', '.join(sorted(unknown))}, which is none of {', '.join(codes)}"
        )
    first, second = codes
    return (first, second), (
        RawPages(files[first], tables.get(first, ())), RawPages(files[second], tables.get(second, ())),
    )  # fmt: skip


def _by_code(option: str, values: Sequence[str]) -> dict[str, tuple[Path, ...]]:
    files: dict[str, tuple[Path, ...]] = {}
    for value in values:
        code, equals, path = value.partition("=")
        if not equals or not code.replace("-", "").isalpha() or not path:
            raise InputError(f"{option} {value!r}: write CODE=FILE, such as {option} de=FILE")
        files[code] = (*files.get(code, ()), Path(path))
    return files


def name_of(text: str) -> str:
    """Return a title or id in the form in which names are compared."""
    return text.strip().replace("_", " ")


class WikiLinks:
    """The interlanguage links of one language: from a file of names, from tables of a dump, or from the pages."""

    def __init__(self, raw: RawPages, code: str, file: Path | None, reading: RawReading) -> None:
        """`code` is the other language; `file` has lines `page TAB counterpart`."""
        self._by_id: dict[int, str] = {}
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._code = code
        self.in_pages = not file and not raw.langlinks
        self._markup = re.compile(rf"\[\[\s*{re.escape(code)}\s*:\s*([^]|\n]+)", re.IGNORECASE)
        if file:
            for page, other in _from_file(file):
                self._by_name[name_of(page)].append(other)
                reading.links += 1
            return
        for table in raw.langlinks:
            with bar(None, f"reading {table.name}", "links") as meter:
                for number, _, title in read_langlinks(table, code):
                    self._by_id[number] = title
                    meter.update()
        reading.links += len(self._by_id)

    def names(self) -> set[str]:
        """Return the names of all pages that are linked to; an empty set if the pages themselves hold the links."""
        names = {name_of(other) for others in self._by_name.values() for other in others}
        return names | {name_of(other) for other in self._by_id.values()}

    def of(self, page_id: str, title: str) -> tuple[str, ...]:
        """Return the names that a page links to according to the file or tables; links in its text do not count."""
        if self._by_id:
            found = self._by_id.get(int(page_id)) if page_id.isdecimal() else None
            return (found,) if found is not None else ()
        names = dict.fromkeys((name_of(page_id), name_of(title)))
        return tuple(dict.fromkeys(other for name in names for other in self._by_name.get(name, ())))

    def in_page(self, text: str, metadata: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the titles that a page itself links to, by a field or in its markup: [[en:Title]]."""
        fields = (_counterpart(metadata.get(name), self._code) for name in LINK_FIELDS)
        if (title := next((title for title in fields if title is not None), None)) is not None:
            return (title,)
        return tuple(dict.fromkeys(found.strip() for found in self._markup.findall(text)))


def read_pages(raw: RawPages, links: WikiLinks, others: WikiLinks, reading: RawReading) -> Iterator[RawPage]:
    """Yield the pages that link to another language, filling `reading`; `others` link back. Raises InputError."""
    ids: set[str] = set()
    reading.is_dump = is_dump(raw.files[0])
    if raw.langlinks and not reading.is_dump:
        raise InputError(f"{raw.files[0]} is not an XML dump of MediaWiki, and --langlinks belongs to a dump")
    pages = _from_dump(raw, links, others, reading) if reading.is_dump else _from_corpus(raw, links, reading)
    for page in pages:
        if page.id in ids:
            raise InputError(f"{raw.files[0]}: the page id {page.id!r} occurs twice: ids must be unique")
        ids.add(page.id)
        if page.links:
            reading.linked += 1
            yield page


def _from_dump(raw: RawPages, links: WikiLinks, others: WikiLinks, reading: RawReading) -> Iterator[RawPage]:
    linked = None if others.in_pages else others.names()

    def may_link(page: WikiPage) -> bool:
        return links.in_pages or bool(links.of(page.id, page.title))

    for path in raw.files:
        with bar(None, f"reading {path.name}", "pages") as meter:
            for page in read_dump(path, reading.counts, reading.site, may_link, meter.update):
                if page.redirect is None:
                    titles = links.in_page(page.text, {}) if links.in_pages else links.of(page.id, page.title)
                    yield RawPage(page.id, page.title, page.text, titles)
                elif linked is None or name_of(page.title) in linked:
                    reading.redirects[name_of(page.title)] = name_of(page.redirect)
    counts = reading.counts
    reading.articles = counts.pages - counts.other_namespaces - counts.redirects - counts.unusable


def _from_corpus(raw: RawPages, links: WikiLinks, reading: RawReading) -> Iterator[RawPage]:
    for path in raw.files:
        files = sorted(p for p in path.rglob("wiki_*") if p.is_file()) if path.is_dir() else []
        for record in (record for file in files or [path] for record in read_corpus(file)):
            if isinstance(record, BadLine):
                reading.counts.unusable += 1
                continue
            reading.articles += 1
            title = record.title or ""
            found = (
                links.in_page(record.text, record.metadata) if links.in_pages else links.of(record.id, title)
            )
            yield RawPage(record.id, title, record.text, found)


def _from_file(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(nonempty_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise InputError(f"{path}:{number}: expected two columns, 'page TAB counterpart'")
        yield columns[0], columns[1]


def _counterpart(value: Any, code: str) -> str | None:
    """Return the title for a language in {"en": "Title"} or [{"lang": "en", "title": "Title"}] (or the API's "*")."""
    if isinstance(value, Mapping):
        title = value.get(code)
    else:
        entries = value if isinstance(value, list) else []
        matches = (e for e in entries if isinstance(e, Mapping) and e.get("lang") == code)
        title = next((e.get("title", e.get("*")) for e in matches), None)
    return title if isinstance(title, str) else None


def read_langlinks(path: Path, code: str | None = None) -> Iterator[Row]:
    """Yield (page id, language, title) of the links to `code`, or of all, using 1 MiB. Raises InputError."""
    wanted = code.encode() if code else None
    for number, language, title in _rows(path, wanted):
        yield int(number), _text(language), _text(title)


def _rows(path: Path, language: bytes | None) -> Iterator[tuple[bytes, ...]]:
    """Yield the raw values of the rows of a language. After a statement, the head of the next one is searched for."""
    buffer, inside, seen = b"", False, False
    with reading(path) as blocks:
        for block in blocks:
            buffer += block
            position = 0
            while True:
                if not inside:
                    if not (head := _HEADS.search(buffer, position)):
                        # The end of the buffer may be the beginning of a head.
                        position = max(position, len(buffer) - LONGEST)
                        break
                    _check_columns(path, head)
                    position = head.end()
                    seen = True
                    inside = head[0][:6].upper() != b"CREATE"
                elif row := _ROW.match(buffer, position):
                    if language is None or row[2] == language:
                        yield row.group(1, 2, 3)
                    position, inside = row.end(), row[4] == b","
                else:
                    break
            buffer = buffer[position:]
            if inside and len(buffer) > LONGEST + len(block):
                raise _damaged(path, buffer)
    if inside:
        raise _damaged(path, buffer)
    if not seen:
        raise InputError(f"{path} does not hold the table langlinks: pass WIKI-DATE-langlinks.sql.gz")


def _damaged(path: Path, rest: bytes) -> InputError:
    start = rest[:40].decode(errors="backslashreplace")
    return InputError(
        f"{path} is damaged or truncated: expected a row (id, 'language', 'title') at {start!r}: {REMEDY}"
    )


def _check_columns(path: Path, head: re.Match[bytes]) -> None:
    """Raise InputError if a statement names other columns, or in another order."""
    names = _COLUMN.findall(head[2]) if head[2] else re.findall(rb"\w+", head[1] or b"")
    columns = tuple(name.decode() for name in names)
    if columns and columns != COLUMNS:
        raise InputError(
            f"{path}: the table langlinks has the columns {', '.join(columns)}; expected {COLUMNS}"
        )


def _text(value: bytes) -> str:
    if b"\\" in value or b"''" in value:
        value = _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1]) if m[1] else b"'", value)
    return value.decode(errors="replace")
