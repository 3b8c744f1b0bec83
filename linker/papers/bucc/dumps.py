"""MediaWiki's XML export (pages-articles.xml.bz2) as a stream of pages."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from linker.base.errors import InputError
from linker.papers.bucc.compressed import REMEDY, first_block, reading
from linker.papers.bucc.wikitext import CATEGORY, MEDIA

ARTICLES = "0"  # the namespace of articles
MEDIA_KEYS, CATEGORY_KEY = ("-2", "6"), "14"
HEAD = 1 << 10  # bytes within which the first element must begin
LONGEST = 1 << 24  # characters of a page; MediaWiki allows 2 MiB
# Elements whose text is read, by their parent's name.
READ = {("page", "title"), ("page", "ns"), ("page", "id"), ("revision", "text"), ("namespaces", "namespace")}


@dataclass(slots=True)
class WikiPage:
    """A page of a dump: the text of its last revision, or its redirect target."""

    id: str = ""
    title: str = ""
    namespace: str = ""
    redirect: str | None = None
    text: str = ""


@dataclass(slots=True)
class Site:
    """What a dump says about its wiki: the casefolded names of the namespaces for media and categories."""

    media: frozenset[str] = MEDIA
    categories: frozenset[str] = CATEGORY
    language: str = ""

    def add(self, key: str, name: str) -> None:
        """Add the name of a namespace."""
        if key in MEDIA_KEYS:
            self.media |= {name.casefold()}
        elif key == CATEGORY_KEY:
            self.categories |= {name.casefold()}


@dataclass(slots=True)
class DumpCounts:
    """Numbers of pages in a dump: all, those in other namespaces, redirects, and those without an id or a title."""

    pages: int = 0
    other_namespaces: int = 0
    redirects: int = 0
    unusable: int = 0


def is_dump(path: Path) -> bool:
    """Return whether a file holds MediaWiki's XML export, compressed or not. Raises InputError as `reading` does."""
    return b"<mediawiki" in first_block(path)[:HEAD]


def read_dump(
    path: Path,
    counts: DumpCounts,
    site: Site,
    wanted: Callable[[WikiPage], bool] = lambda page: True,
    advance: Callable[[int], object] = lambda pages: None,
) -> Iterator[WikiPage]:
    """Yield the articles and redirects of a dump in order, holding few in memory; fill `counts` and `site`.

    `wanted` gets an article with id and title before its text: if it returns False, the text is skipped and the page
    is not yielded. `advance` gets the number of pages in each block. Of several revisions, the last one counts.
    Raises InputError if the file cannot be read, is damaged or truncated, or is not such a dump.
    """
    handler = _Handler(counts, site, wanted)
    parser = expat.ParserCreate(namespace_separator=None)
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = handler.start, handler.end
    parser.StartDoctypeDeclHandler = handler.refuse
    handler.listen = lambda on: setattr(parser, "CharacterDataHandler", handler.text if on else None)
    try:
        with reading(path) as blocks:
            for block in blocks:
                before = counts.pages
                parser.Parse(block, False)
                yield from handler.take()
                advance(counts.pages - before)
            parser.Parse(b"", True)
    except expat.ExpatError as e:
        raise InputError(
            f"{path} is damaged or truncated after {counts.pages:,} pages ({e}): {REMEDY}"
        ) from None
    except _NotADumpError as e:
        raise InputError(f"{path} is not an XML dump of MediaWiki: {e}") from None
    yield from handler.take()


class _NotADumpError(Exception):
    pass


@dataclass(slots=True)
class _Handler:
    counts: DumpCounts
    site: Site
    wanted: Callable[[WikiPage], bool]
    listen: Callable[[bool], None] = lambda on: None
    _path: list[str] = field(default_factory=list)
    _pages: list[WikiPage] = field(default_factory=list)
    _page: WikiPage = field(default_factory=WikiPage)
    _is_wanted: bool = False
    _key: str = ""
    _pieces: list[str] = field(default_factory=list)

    def take(self) -> Sequence[WikiPage]:
        """Return the pages since the last call."""
        pages, self._pages = self._pages, []
        return pages

    def refuse(self, *declaration: object) -> None:
        raise _NotADumpError("it declares a document type, which a dump does not have")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self._path[-1] if self._path else ""
        self._path.append(name)
        if not parent:
            if name != "mediawiki":
                raise _NotADumpError(f"its first element is <{name}>, not <mediawiki>")
            self.site.language = attributes.get("xml:lang", "")
        elif name == "page":
            self._page, self._is_wanted = WikiPage(), False
        elif name == "redirect" and parent == "page":
            self._page.redirect = attributes.get("title", "")
        elif (parent, name) in READ and (name != "text" or self._decide()):
            self._key = attributes.get("key", "")
            self._pieces.clear()
            self.listen(True)

    def text(self, data: str) -> None:
        self._pieces.append(data)

    def end(self, name: str) -> None:
        self._path.pop()
        parent = self._path[-1] if self._path else ""
        if name == "page":
            self._finish()
        elif (parent, name) in READ:
            self.listen(False)
            self._set(name, "".join(self._pieces))
            self._pieces.clear()

    def _set(self, name: str, value: str) -> None:
        if name == "namespace":
            self.site.add(self._key, value)
        elif name == "text":
            self._page.text = value[:LONGEST]
        else:
            setattr(self._page, {"ns": "namespace"}.get(name, name), value.strip())

    def _decide(self) -> bool:
        """Return whether the text of the current page is read; ids and titles come before the revisions."""
        page = self._page
        article = page.namespace == ARTICLES and page.redirect is None and page.id and page.title
        self._is_wanted = bool(article) and self.wanted(page)
        return self._is_wanted

    def _finish(self) -> None:
        page, counts = self._page, self.counts
        counts.pages += 1
        if not page.id or not page.title:
            counts.unusable += 1
        elif page.namespace != ARTICLES:
            counts.other_namespaces += 1
        elif page.redirect is not None:
            counts.redirects += 1
            self._pages.append(page)
        elif self._is_wanted:
            self._pages.append(page)
