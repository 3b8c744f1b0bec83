"""Preparing BUCC 2015's data from raw pages: pairs linked in both directions, filtered by length, in two halves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from indexes.interface import Document
from linker.corpora import BadLine, read_corpus
from linker.errors import InputError
from linker.files import nonempty_lines, write_atomically
from linker.printable import spreadsheet_cell

FULL_STOP = {"zh": "。", "ja": "。", "hi": "।", "bn": "।"}
LINK_FIELDS = ("langlinks", "links")
COMMENT = re.compile(
    r"<!--.*?-->|<(ref|gallery|math|table)\b[^>]*?(?:/>|>.*?</\1\s*>)", re.DOTALL | re.IGNORECASE
)
INNERMOST = re.compile(r"\{\{[^{}]*\}\}|\{\|.*?\|\}", re.DOTALL)
MEDIA = re.compile(r"\[\[[^][|]*:[^][|]*\|[^][]*\]\]")
LINK = re.compile(r"\[\[(?:[^][|]*\|)?([^][|]*)\]\]|\[https?://\S+ ?([^]]*)\]")
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")

Pages = dict[str, Document]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Report:
    """Counts of each step of the preparation, and the quartiles of the length ratio between which pairs are kept."""

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    def text(self) -> str:
        """Return the counts as lines of a table."""
        low, high = self.ratio
        return (
            f"pages                {self.source_pages:,} and {self.target_pages:,} ({self.unusable:,} unusable)\n"
            f"linked both ways     {self.linked_both_ways:,}\n"
            f"with text            {self.with_text:,}\n"
            f"ratio of lengths     {low:.3f} to {high:.3f} (quartiles): {self.kept:,}\n"
            f"train, test          {self.train:,}, {self.test:,} (seed {self.seed})\n"
        )


def prepare(
    source: Path,
    target: Path,
    out: Path,
    languages: tuple[str, str],
    links: Path | None = None,
    back_links: Path | None = None,
    *,
    seed: int = 0,
) -> Report:
    """Write pages and qrels of a training and a test half into the folder `out`, and return the counts.

    `links` and `back_links`: files of `page TAB counterpart`, ids or titles; by default, the pages' own field
    `langlinks` ({"en": "Title"}, or a list of {"lang", "title"}). Two pages are a pair if each links to the other. New
    ids are opaque and in random order in each language; key.tsv maps them to the original ones. Raises InputError where
    a page id occurs twice, a line of links is malformed, or no pair remains.
    """
    (sources, bad), (targets, more_bad) = _read(source), _read(target)
    forward = _links(sources, targets, languages[1], links)
    backward = _links(targets, sources, languages[0], back_links)
    both = [(a, b) for a, b in forward.items() if backward.get(b) == a]
    if not both:
        raise InputError(
            f"no two pages of {source} and {target} link to each other: pass --links and --back-links"
        )
    texts = [
        (pair, _body(sources[pair[0]], languages[0]), _body(targets[pair[1]], languages[1])) for pair in both
    ]
    complete = [entry for entry in texts if entry[1] and entry[2]]
    if not complete:
        raise InputError(
            f"in none of the {len(both):,} linked pairs do both pages have text after the first sentence"
        )
    ratios = np.array([len(a) / len(b) for _, a, b in complete])
    low, high = (float(q) for q in np.percentile(ratios, (25, 75)))
    selected = [complete[i] for i in np.flatnonzero((ratios >= low) & (ratios <= high)).tolist()]
    halves = _write(selected, out, languages, seed)
    counts = (len(sources), len(targets), bad + more_bad, len(both), len(complete), len(selected))
    report = Report(*counts, (low, high), *halves, seed)
    write_atomically(out / "prepare.json", orjson.dumps(report.to_dict(), option=orjson.OPT_INDENT_2) + b"\n")
    return report


def _read(path: Path) -> tuple[Pages, int]:
    """Read raw pages and count the unusable ones: all formats of `read_corpus`, and wikiextractor's folders."""
    files = sorted(p for p in path.rglob("wiki_*") if p.is_file()) if path.is_dir() else []
    records = (record for file in files or [path] for record in read_corpus(file))
    pages: Pages = {}
    bad = 0
    for record in records:
        if isinstance(record, BadLine):
            bad += 1
        elif record.id in pages:
            raise InputError(f"{path}: the page id {record.id!r} occurs twice: ids must be unique")
        else:
            pages[record.id] = record
    return pages, bad


def _links(pages: Pages, others: Pages, code: str, file: Path | None) -> dict[str, str]:
    """Return each page's counterpart by id; links with unknown pages are left out."""
    known, known_others = _names(pages), _names(others)
    pairs = _from_file(file) if file else _from_pages(pages, code)
    return {
        known[_name(page)]: known_others[_name(other)]
        for page, other in pairs
        if _name(page) in known and _name(other) in known_others
    }


def _names(pages: Pages) -> dict[str, str]:
    titles = {_name(page.title): id_ for id_, page in pages.items() if page.title}
    return titles | {_name(id_): id_ for id_ in pages}


def _name(text: str) -> str:
    return text.strip().replace("_", " ")


def _from_file(path: Path) -> Iterator[Pair]:
    for number, line in enumerate(nonempty_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise InputError(f"{path}:{number}: expected two columns, 'page TAB counterpart'")
        yield columns[0], columns[1]


def _from_pages(pages: Pages, code: str) -> Iterator[Pair]:
    for id_, page in pages.items():
        for name in LINK_FIELDS:
            if (other := _counterpart(page.metadata.get(name), code)) is not None:
                yield id_, other
                break


def _counterpart(value: Any, code: str) -> str | None:
    """Return the title for a language in {"en": "Title"} or [{"lang": "en", "title": "Title"}] (or the API's "*")."""
    if isinstance(value, Mapping):
        title = value.get(code)
    else:
        entries = value if isinstance(value, list) else []
        matches = (e for e in entries if isinstance(e, Mapping) and e.get("lang") == code)
        title = next((e.get("title", e.get("*")) for e in matches), None)
    return title if isinstance(title, str) else None


def _body(page: Document, code: str) -> str:
    """Return a page's text without markup and without its first sentence."""
    text = strip_markup(page.text).strip()
    # Older versions of wikiextractor repeat the title.
    if page.title and text.startswith(page.title + "\n"):
        text = text[len(page.title) :]
    return text.partition(FULL_STOP.get(code, "."))[2].strip()


def strip_markup(text: str) -> str:
    """Return the text without comments, references, templates, tables and media; links keep their text."""
    text = COMMENT.sub("", text)
    for pattern in (INNERMOST, MEDIA):
        while (shorter := pattern.sub("", text)) != text:
            text = shorter
    text = LINK.sub(lambda match: match[1] or match[2] or "", text)
    return TAG.sub("", text)


def _write(
    selected: list[tuple[Pair, str, str]], out: Path, languages: tuple[str, str], seed: int
) -> tuple[int, int]:
    """Write both halves and return their sizes."""
    rng = np.random.default_rng(seed)
    n = len(selected)
    ids = [_opaque(code, rng.permutation(n)) for code in languages]
    order = rng.permutation(n)
    halves = {"train": sorted(order[: n // 2].tolist()), "test": sorted(order[n // 2 :].tolist())}
    (out / "qrels").mkdir(parents=True, exist_ok=True)
    for half, rows in halves.items():
        for i, code in enumerate(languages):
            pages = sorted((ids[i][row], selected[row][1 + i]) for row in rows)
            lines = (orjson.dumps({"_id": id_, "text": text, "language": code}) for id_, text in pages)
            _write_lines(out / f"{code}.{half}.jsonl", lines)
        links = sorted(f"{ids[0][row]} 0 {ids[1][row]} 1" for row in rows)
        _write_lines(out / "qrels" / f"{languages[0]}.{half}.txt", (link.encode() for link in links))
    key = sorted((ids[i][row], selected[row][0][i]) for row in range(n) for i in (0, 1))
    _write_lines(out / "key.tsv", (f"{id_}\t{spreadsheet_cell(page)}".encode() for id_, page in key))
    return len(halves["train"]), len(halves["test"])


def _opaque(code: str, order: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[str]:
    width = max(5, len(str(len(order))))
    return [f"{code}{number + 1:0{width}}" for number in order.tolist()]


def _write_lines(path: Path, lines: Iterable[bytes]) -> None:
    write_atomically(path, b"".join(line + b"\n" for line in lines))
