"""Preparing BUCC 2015's data from raw pages: pairs linked in both directions, filtered by length, in two halves."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice, tee
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from linker.base.errors import InputError
from linker.base.files import replacing, write_atomically
from linker.base.printable import spreadsheet_cell
from linker.crosslingual.pages.chunks import in_order
from linker.papers.bucc.dumps import Site
from linker.papers.bucc.pairing import SHOWN, Linked, Pair, described, pair_pages
from linker.papers.bucc.raw_pages import RawPage, RawPages, RawReading, WikiLinks, read_pages
from linker.papers.bucc.sentences import after_first_stop, without_first_sentence
from linker.papers.bucc.wikitext import strip_markup

__all__ = ["PreparationReport", "RawPages", "prepare", "strip_markup"]
Place = tuple[Pair, int, int]  # a pair and its texts' numbers
Cut = Callable[[str, str], str]  # (text, language) → the text without its first sentence
TOGETHER = 200  # pages given to a process at a time
AHEAD = 4  # groups queued per process


@dataclass(frozen=True, slots=True)
class PreparationReport:
    """Counts of each step of the preparation, and the quartiles of the length ratio, between which pairs are kept.

    `ambiguous_names`: names of links that fit several pages, as a title or an id; `left_out`: the number of pairs
    left out because of them, the first of which are listed by id in `ambiguous_pairs`. `read`: per language, what was
    read; `first_stop`: whether texts begin after the first full stop, not after the first sentence.
    """

    source_pages: int
    target_pages: int
    unusable: int
    linked_both_ways: int
    with_text: int
    kept: int
    ratio: tuple[float, float]
    train: int
    test: int
    seed: int
    ambiguous_names: int = 0
    ambiguous_pairs: int = 0
    left_out: tuple[Pair, ...] = ()
    unresolved: int = 0
    read: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    first_stop: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    def text(self) -> str:
        """Return the counts as lines of a table."""
        low, high = self.ratio
        ambiguous = f"ambiguous, left out  {self.ambiguous_pairs:,}: {described(self.left_out)}\n"
        return (
            f"pages                {self.source_pages:,} and {self.target_pages:,} ({self.unusable:,} unusable)\n"
            f"linked both ways     {self.linked_both_ways:,}\n"
            f"{ambiguous if self.ambiguous_pairs else ''}"
            f"with text            {self.with_text:,}\n"
            f"ratio of lengths     {low:.3f} to {high:.3f} (quartiles): {self.kept:,}\n"
            f"train, test          {self.train:,}, {self.test:,} (seed {self.seed})\n"
        )


def prepare(
    source: Path | RawPages,
    target: Path | RawPages,
    out: Path,
    languages: tuple[str, str],
    links: Path | None = None,
    back_links: Path | None = None,
    *,
    seed: int = 0,
    jobs: int = 1,
    first_stop: bool = False,
) -> PreparationReport:
    """Write pages and qrels of a training and a test half into the folder `out`, and return the counts.

    `source`, `target`: a file or folder of pages, or `RawPages`, for the parts of a dump and its link tables. `links`
    and `back_links`: files of `page TAB counterpart`, ids or titles; by default, the tables of a dump or the pages' own
    links: a field `langlinks` ({"en": "Title"}, or a list of {"lang", "title"}), or [[en:Title]] in the markup. Two
    pages are a pair if each links to the other. New ids are opaque and in random order in each language; key.tsv maps
    them to the original ones. With `first_stop`, texts begin after their first full stop, as in the paper, else after
    their first sentence. Texts are kept in a temporary file in `out`; `jobs` processes parse the markup. Raises
    InputError if a page id occurs twice, a line of links is malformed, a dump is damaged, or no pair remains, and
    MissingExtraError without the extra 'crosslingual'.
    """
    raw = tuple(path if isinstance(path, RawPages) else RawPages((path,)) for path in (source, target))
    readings = (RawReading(), RawReading())
    cut = after_first_stop if first_stop else without_first_sentence
    linking = [WikiLinks(raw[i], languages[1 - i], (links, back_links)[i], readings[i]) for i in (0, 1)]
    out.mkdir(parents=True, exist_ok=True)
    with closing(Texts(out)) as texts:
        read = [
            _read(raw[i], linking[i], linking[1 - i], readings[i], languages[i], texts, jobs, cut)
            for i in (0, 1)
        ]
        pairs = pair_pages(read[0].linked, read[1].linked)
        if not pairs.pairs:
            raise InputError(
                f"no two pages of {raw[0].files[0]} and {raw[1].files[0]} link to each other: "
                "pass --links and --back-links, or --langlinks with a dump"
            )
        places = [(pair, read[0].numbers[pair[0]], read[1].numbers[pair[1]]) for pair in pairs.pairs]
        selected, with_text, ratio = _select(places, texts)
        halves = _write(selected, texts, out, languages, seed)
    report = PreparationReport(
        source_pages=readings[0].articles,
        target_pages=readings[1].articles,
        unusable=sum(reading.counts.unusable for reading in readings),
        linked_both_ways=len(pairs.pairs),
        with_text=with_text,
        kept=len(selected),
        ratio=ratio,
        train=halves[0],
        test=halves[1],
        seed=seed,
        ambiguous_names=len(pairs.ambiguous_names),
        ambiguous_pairs=len(pairs.left_out),
        left_out=pairs.left_out[:SHOWN],
        unresolved=pairs.unresolved,
        first_stop=first_stop,
        read={code: reading.to_dict() for code, reading in zip(languages, readings, strict=True)},
    )
    write_atomically(out / "prepare.json", orjson.dumps(report.to_dict(), option=orjson.OPT_INDENT_2) + b"\n")
    return report


@dataclass(frozen=True, slots=True)
class _Read:
    """The pages of one language that link to the other one, and the numbers of their texts by id."""

    linked: Linked
    numbers: Mapping[str, int]


def _read(
    raw: RawPages,
    links: WikiLinks,
    others: WikiLinks,
    reading: RawReading,
    code: str,
    texts: Texts,
    jobs: int,
    cut: Cut,
) -> _Read:
    titles: dict[str, str] = {}
    linked: dict[str, tuple[str, ...]] = {}
    numbers: dict[str, int] = {}
    pages = read_pages(raw, links, others, reading)
    for page, text in bodies(pages, code, reading.site, jobs, cut):
        titles[page.id], linked[page.id] = page.title, page.links
        numbers[page.id] = texts.add(text)
    return _Read(Linked(titles, linked, reading.redirects, by_id=not reading.is_dump), numbers)


def _select(places: list[Place], texts: Texts) -> tuple[list[Place], int, tuple[float, float]]:
    """Return the pairs between the quartiles of the length ratio, how many have text, and the quartiles."""
    complete = [place for place in places if texts.length(place[1]) and texts.length(place[2])]
    if not complete:
        raise InputError(
            f"in none of the {len(places):,} linked pairs do both pages have text after the first sentence"
        )
    ratios = np.array([texts.length(a) / texts.length(b) for _, a, b in complete])
    low, high = (float(q) for q in np.percentile(ratios, (25, 75)))
    return (
        [complete[i] for i in np.flatnonzero((ratios >= low) & (ratios <= high)).tolist()],
        len(complete),
        (low, high),
    )


def _write(
    selected: list[Place], texts: Texts, out: Path, languages: tuple[str, str], seed: int
) -> tuple[int, int]:
    rng = np.random.default_rng(seed)
    n = len(selected)
    ids = [_opaque(code, rng.permutation(n)) for code in languages]
    order = rng.permutation(n)
    halves = {"train": sorted(order[: n // 2].tolist()), "test": sorted(order[n // 2 :].tolist())}
    (out / "qrels").mkdir(parents=True, exist_ok=True)
    for half, rows in halves.items():
        for i, code in enumerate(languages):
            pages = sorted((ids[i][row], selected[row][1 + i]) for row in rows)
            _write_lines(out / f"{code}.{half}.jsonl", _pages(pages, texts, code))
        links = sorted(f"{ids[0][row]} 0 {ids[1][row]} 1" for row in rows)
        _write_lines(out / "qrels" / f"{languages[0]}.{half}.txt", (link.encode() for link in links))
    key = sorted((ids[i][row], selected[row][0][i]) for row in range(n) for i in (0, 1))
    _write_lines(out / "key.tsv", (f"{id_}\t{spreadsheet_cell(page)}".encode() for id_, page in key))
    return len(halves["train"]), len(halves["test"])


def _pages(pages: Iterable[tuple[str, int]], texts: Texts, code: str) -> Iterator[bytes]:
    for id_, number in pages:
        yield orjson.dumps({"_id": id_, "text": texts[number], "language": code})


def _opaque(code: str, order: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[str]:
    width = max(5, len(str(len(order))))
    return [f"{code}{number + 1:0{width}}" for number in order.tolist()]


def _write_lines(path: Path, lines: Iterable[bytes]) -> None:
    with replacing(path) as file:
        file.writelines(line + b"\n" for line in lines)


def body(page: RawPage, code: str, site: Site, cut: Cut = without_first_sentence) -> str:
    """Return a page's text without markup and, if `cut`, without its first sentence."""
    text = strip_markup(page.text, site.media, site.categories)
    # Older versions of wikiextractor repeat the title.
    if page.title and text.startswith(page.title + "\n"):
        text = text[len(page.title) :]
    return cut(text, code)


def bodies(
    pages: Iterable[RawPage], code: str, site: Site, jobs: int = 1, cut: Cut = without_first_sentence
) -> Iterator[tuple[RawPage, str]]:
    """Yield the pages with their bodies, in order, with `jobs` processes if there are many; `cut` must be picklable."""
    pages = iter(pages)
    first = list(islice(pages, TOGETHER * 2))
    yield from zip(first, _bodies(first, code, site, cut), strict=True)
    if jobs <= 1 or len(first) < TOGETHER * 2:
        yield from ((page, body(page, code, site, cut)) for page in pages)
        return
    groups, again = tee(iter(lambda: list(islice(pages, TOGETHER)), []))
    function = partial(_bodies, code=code, site=site, cut=cut)
    # Not forked, since a fork may copy a lock that a library's thread holds.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for group, texts in zip(groups, in_order(pool, function, again, jobs * AHEAD), strict=True):
            yield from zip(group, texts, strict=True)


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
