"""The texts of pages without markup and first sentences, computed in one or more processes and kept in a file."""

from __future__ import annotations

import tempfile
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from linker.papers.bucc.dumps import Site
from linker.papers.bucc.raw_pages import RawPage
from linker.papers.bucc.sentences import without_first_sentence
from linker.papers.bucc.wikitext import strip_markup

Cut = Callable[[str, str], str]  # (text, language) → the text without its first sentence
TOGETHER = 200  # pages given to a process at a time
AHEAD = 4  # waiting groups per process


def body(page: RawPage, code: str, site: Site, cut: Cut = without_first_sentence) -> str:
    """Return a page's text without markup and, depending on `cut`, without its first sentence, in the language
    `code`."""
    text = strip_markup(page.text, site.media, site.categories)
    # Older versions of wikiextractor repeat the title.
    if page.title and text.startswith(page.title + "\n"):
        text = text[len(page.title) :]
    return cut(text, code)


def bodies(
    pages: Iterable[RawPage], code: str, site: Site, jobs: int = 1, cut: Cut = without_first_sentence
) -> Iterator[tuple[RawPage, str]]:
    """Yield the pages with their bodies, in order; with `jobs` processes if there are many pages.

    `cut` must be picklable. This process reads the pages; only a few groups of them are in memory at a time.
    """
    pages = iter(pages)
    first = list(islice(pages, TOGETHER * 2))
    yield from zip(first, _bodies(first, code, site, cut), strict=True)
    if jobs <= 1 or len(first) < TOGETHER * 2:
        yield from ((page, body(page, code, site, cut)) for page in pages)
        return
    waiting: deque[tuple[Sequence[RawPage], Future[list[str]]]] = deque()
    # No fork: it may copy a lock that a library's thread holds.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        while group := list(islice(pages, TOGETHER)):
            waiting.append((group, pool.submit(_bodies, group, code, site, cut)))
            if len(waiting) > jobs * AHEAD:
                yield from _next(waiting)
        while waiting:
            yield from _next(waiting)


def _next(waiting: deque[tuple[Sequence[RawPage], Future[list[str]]]]) -> Iterator[tuple[RawPage, str]]:
    group, future = waiting.popleft()
    yield from zip(group, future.result(), strict=True)


def _bodies(pages: Sequence[RawPage], code: str, site: Site, cut: Cut) -> list[str]:
    return [body(page, code, site, cut) for page in pages]


class Texts:
    """Texts in a temporary file, so that memory holds only their offsets and lengths."""

    def __init__(self, folder: Path) -> None:
        """Create the file in `folder`; it has no name and vanishes with the process."""
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it stays open as long as the object
        self._ends = array("Q", [0])
        self._lengths = array("Q")

    def add(self, text: str) -> int:
        """Append a text and return its number."""
        data = text.encode("utf-8", "surrogatepass")
        self._file.seek(self._ends[-1])
        self._file.write(data)
        self._ends.append(self._ends[-1] + len(data))
        self._lengths.append(len(text))
        return len(self._lengths) - 1

    def length(self, number: int) -> int:
        """Return the length of a text in characters."""
        return self._lengths[number]

    def __getitem__(self, number: int) -> str:
        self._file.seek(self._ends[number])
        return self._file.read(self._ends[number + 1] - self._ends[number]).decode("utf-8", "surrogatepass")

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
