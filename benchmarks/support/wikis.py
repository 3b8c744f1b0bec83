"""Two small wikis in the formats of Wikimedia's dumps: XML in the schema export-0.11, and SQL for the links."""

import bz2
import gzip
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

NAMESPACES = {
    "de": {6: "Datei", 10: "Vorlage", 14: "Kategorie", 1: "Diskussion"},
    "en": {6: "File", 10: "Template", 14: "Category", 1: "Talk"},
}
WORDS = {
    "de": "Stadt Fluss Kirche Brücke Jahr Krieg König Wald Markt Schule Straße Hafen Insel Berg Burg Zug Kunst",
    "en": "town river church bridge year war king forest market school street harbour island hill castle train art",
}
SMALL = {"de": "und der die das im von mit wurde ist nach", "en": "and the of in a from with was is after"}
QUOTED = str.maketrans(
    {"\\": "\\\\", "\0": "\\0", "\n": "\\n", "\r": "\\r", "'": "\\'", '"': '\\"', "\x1a": "\\Z"}
)
STREAM = 100  # pages per bzip2 stream, as in Wikimedia's multistream files
Row = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page as stored in a dump; `redirect` is the title that it leads to."""

    id: int
    title: str
    text: str
    namespace: int = 0
    redirect: str | None = None


def article(code: str, number: int, length: int = 5000) -> str:
    """Return the markup of an article of at least `length` characters; equal numbers share names and years."""
    shared, own = random.Random(number), random.Random(f"{code}{number}")
    names = [
        f"{shared.choice('BDFGKLMNRST')}{shared.choice('aeiou')}{shared.randrange(10**5):x}ow"
        for _ in range(12)
    ]
    words, small = WORDS[code].split(), SMALL[code].split()
    topics = shared.sample(range(len(words)), 5)
    media, category = NAMESPACES[code][6], NAMESPACES[code][14]
    year = 1000 + number % 1000
    lines = [
        f"{{{{Infobox\n| name = {names[0]}\n| image = {names[0]}.jpg\n| elevation = {{{{formatnum|{number}}}}}\n}}}}",
        f"[[{media}:{names[0]}.jpg|thumb|250px|{names[1]} [[{names[2]}|{words[topics[0]]}]] ''{year}'']]",
        f"'''{names[0]}''' ({{{{IPA|x}}}}) {small[7]} [[{words[topics[0]]}]] {small[3]}&nbsp;{names[3]}, 3.14 km. ",
    ]
    while sum(map(len, lines)) < length:
        body = [
            own.choice((words[own.choice(topics)], own.choice(small), own.choice(small), own.choice(names)))
            for _ in range(40)
        ]
        body[5] = f"[[{body[5]} ({names[4]})|{body[5]}]]"
        body[11] = f"'''{body[11]}'''"
        body[20] += (
            f'<ref name="r{len(lines)}">{{{{cite web|url=http://example.org/{number}|title={body[1]}}}}}</ref>'
        )
        lines.append(
            f"\n== {body[3]} ==\n{' '.join(body)}, {year + len(lines)}. {words[topics[1]].title()} &amp; {names[5]}."
        )
        if len(lines) % 4 == 0:
            lines.append(f'{{| class="wikitable"\n! a !! b\n|-\n| {body[0]} || {body[1]}\n|}}')
    return "\n".join([*lines, "{{Authority}}", f"[[{category}:{words[topics[0]]}]]"])


def export(code: str, pages: Sequence[WikiPage]) -> Iterator[str]:
    """Yield the parts of a dump: the header, groups of pages, and the end."""
    names = "".join(
        f'      <namespace key="{key}" case="first-letter">{escape(name)}</namespace>\n'
        for key, name in sorted(NAMESPACES[code].items())
    )
    schema = "http://www.mediawiki.org/xml/export-0.11"
    yield (
        f'<mediawiki xmlns="{schema}/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{schema}/ {schema}.xsd" version="0.11" xml:lang="{code}">\n  <siteinfo>\n'
        f"    <sitename>Wikipedia</sitename>\n    <dbname>{code}wiki</dbname>\n"
        f"    <base>https://{code}.wikipedia.org/wiki/Main</base>\n    <generator>MediaWiki 1.43.0</generator>\n"
        f'    <case>first-letter</case>\n    <namespaces>\n      <namespace key="0" case="first-letter" />\n{names}'
        "    </namespaces>\n  </siteinfo>\n"
    )
    for first in range(0, len(pages), STREAM):
        yield "".join(map(_page, pages[first : first + STREAM]))
    yield "</mediawiki>\n"


def _page(page: WikiPage) -> str:
    redirect = f"    <redirect title={quoteattr(page.redirect)} />\n" if page.redirect is not None else ""
    size = len(page.text.encode())
    return (
        f"  <page>\n    <title>{escape(page.title)}</title>\n    <ns>{page.namespace}</ns>\n    <id>{page.id}</id>\n"
        f"{redirect}    <revision>\n      <id>{page.id + 10**6}</id>\n      <parentid>{page.id}</parentid>\n"
        "      <timestamp>2026-01-02T03:04:05Z</timestamp>\n      <contributor>\n"
        f"        <username>A &amp; B</username>\n        <id>{page.id % 97}</id>\n"
        "      </contributor>\n      <comment>/* x */ ''y''</comment>\n"
        f"      <origin>{page.id + 10**6}</origin>\n      <model>wikitext</model>\n"
        "      <format>text/x-wiki</format>\n"
        f'      <text bytes="{size}" sha1="x" xml:space="preserve">{escape(page.text)}</text>\n'
        "      <sha1>x</sha1>\n    </revision>\n  </page>\n"
    )


def write_dump(path: Path, code: str, pages: Sequence[WikiPage]) -> None:
    """Write a dump: multistream bzip2, gzip or plain XML, by the file name."""
    parts = (part.encode() for part in export(code, pages))
    if path.suffix == ".bz2":
        path.write_bytes(b"".join(bz2.compress(part) for part in parts))
    else:
        data = b"".join(parts)
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def langlinks(rows: Sequence[Row], together: int = 500) -> str:
    """Return the table of links as mysqldump writes it, with `together` rows per statement."""
    values = [
        f"({number},'{quoted(language)}','{quoted(title)}')" for number, language, title in sorted(rows)
    ]
    inserts = "".join(
        f"INSERT INTO `langlinks` VALUES {','.join(values[first : first + together])};\n"
        for first in range(0, len(values), together)
    )
    return (
        "-- MySQL dump 10.19  Distrib 10.5.23-MariaDB\n/*!40101 SET NAMES binary */;\n"
        "DROP TABLE IF EXISTS `langlinks`;\n"
        "CREATE TABLE `langlinks` (\n  `ll_from` int(8) unsigned NOT NULL DEFAULT 0,\n"
        "  `ll_lang` varbinary(35) NOT NULL DEFAULT '',\n  `ll_title` varbinary(255) NOT NULL DEFAULT '',\n"
        "  PRIMARY KEY (`ll_from`,`ll_lang`),\n  KEY `ll_lang` (`ll_lang`,`ll_title`)\n"
        ") ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=COMPRESSED;\n\nLOCK TABLES `langlinks` WRITE;\n"
        f"/*!40000 ALTER TABLE `langlinks` DISABLE KEYS */;\n{inserts}"
        "/*!40000 ALTER TABLE `langlinks` ENABLE KEYS */;\n"
        "UNLOCK TABLES;\n-- Dump completed on 2026-01-02  3:04:05\n"
    )


def quoted(text: str) -> str:
    """Return a string as mysqldump escapes it."""
    return text.translate(QUOTED)


def write_langlinks(path: Path, rows: Sequence[Row]) -> None:
    """Write the table of links, gzipped if the name ends in .gz."""
    data = langlinks(rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def write_wikis(folder: Path, count: int, length: int = 5000) -> dict[str, tuple[Path, Path]]:
    """Write dumps of a German and an English wiki with `count` linked articles each, and pages to be dropped.

    Per ten articles, each wiki has one that links in one direction only, one without links, four redirects, and three
    pages of other namespaces. Returns the dump and the table of links by language.
    """
    files = {}
    for offset, (code, other) in enumerate((("de", "en"), ("en", "de"))):
        pages, rows = [], []
        for number in range(count):
            page = 10 * number + 7 + offset
            pages.append(WikiPage(page, f"{code.title()} Artikel {number}", article(code, number, length)))
            rows += [(page, other, f"{other.title()} Artikel {number}"), (page, "fr", f"L'article {number}")]
            if number % 10 == 0:
                pages += _dropped(code, page, number, length)
                rows.append((page + 1, other, f"{other.title()} Artikel {number}"))
        files[code] = (folder / f"{code}wiki-pages-articles.xml.bz2", folder / f"{code}wiki-langlinks.sql.gz")
        write_dump(files[code][0], code, pages)
        write_langlinks(files[code][1], rows)
    return files


def _dropped(code: str, page: int, number: int, length: int) -> list[WikiPage]:
    names, target = NAMESPACES[code], f"{code.title()} Artikel {number}"
    return [
        WikiPage(page + 1, f"{code} one way {number}", article(code, number + 1, length)),
        WikiPage(page + 2, f"{code} alone {number}", article(code, number + 2, length)),
        *(
            WikiPage(page + 3 + i, f"{code} redirect {number} {i}", "#REDIRECT [[x]]", redirect=target)
            for i in range(3)
        ),
        *(
            WikiPage(page + 6 + i, f"{names[key]}:{number}", "{{x}}", key)
            for i, key in enumerate((10, 14, 1))
        ),
    ]
