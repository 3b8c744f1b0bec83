"""Aligned passages as a translation memory (TMX 1.4) or a table (TSV), written as they arrive."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from linker.base.errors import InputError
from linker.base.files import replacing
from linker.base.printable import NOT_XML, spreadsheet_cell
from linker.crosslingual.aligned.aligning import AlignedPassages, PageAlignment
from linker.crosslingual.aligned.units import Unit
from linker.crosslingual.pages.pages import Pages

COLUMNS = ("source", "target", "score", "probability", "source_page", "target_page", "page_score")
# Languages written without spaces between sentences.
UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my", "bo"})
SEGMENT = {"sentence": "sentence", "line": "paragraph"}


@dataclass
class PassageCounts:
    """Numbers of aligned pages, of passages written or below the minimum score, and of those skipped per language."""

    pages: int = 0
    passages: int = 0
    below: int = 0
    source_skipped: int = 0
    target_skipped: int = 0


@dataclass(frozen=True, eq=False)
class PassageWriter:
    """Writes aligned passages of two collections to a file whose name ends in .tmx or .tsv."""

    path: Path
    source: Pages
    target: Pages
    unit: Unit

    def write(self, alignments: Iterable[PageAlignment], least: float = 0.0) -> PassageCounts:
        """Write passages that score `least` or more, atomically; return the counts. Raises InputError."""
        begin, entry, end = self._format()
        counts = PassageCounts()
        with replacing(self.path) as file:
            _put(file, begin)
            for alignment in alignments:
                counts.pages += 1
                counts.source_skipped += alignment.source_skipped
                counts.target_skipped += alignment.target_skipped
                for passages in alignment.passages:
                    if passages.score < least:
                        counts.below += 1
                        continue
                    counts.passages += 1
                    _put(file, entry(counts.passages, passages))
            _put(file, end)
        return counts

    def _format(self) -> tuple[str, Callable[[int, AlignedPassages], str], str]:
        suffix = self.path.suffix.lower()
        if suffix == ".tsv":
            return "\t".join(COLUMNS) + "\n", self._row, ""
        if suffix == ".tmx":
            return self._header(), self._unit, "</body>\n</tmx>\n"
        raise InputError(f"{self.path}: the name must end in .tmx (a translation memory) or .tsv (a table)")

    def _header(self) -> str:
        attributes = {
            "creationtool": "linker",
            # Imported here by name: the package `linker` exports the command that this module is part of.
            "creationtoolversion": str(import_module("linker").__version__),
            "segtype": SEGMENT[self.unit],
            "o-tmf": "linker",
            "adminlang": "en",
            "srclang": self.source.language.code,
            "datatype": "plaintext",
        }
        header = " ".join(f"{name}={quoteattr(value)}" for name, value in attributes.items())
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n<header {header}/>\n<body>\n'

    def _unit(self, number: int, passages: AlignedPassages) -> str:
        properties = {
            "x-score": f"{passages.score:.4f}",
            "x-probability": f"{passages.probability:.4f}",
            "x-source-page": self.source.ids[passages.link.source],
            "x-target-page": self.target.ids[passages.link.target],
            "x-page-score": f"{passages.link.score:.9g}",
        }
        lines = [f'<tu tuid="{number}">']
        lines += [f'<prop type="{name}">{_xml(value)}</prop>' for name, value in properties.items()]
        for code, text in self._texts(passages):
            lines.append(f"<tuv xml:lang={quoteattr(code)}><seg>{_xml(text)}</seg></tuv>")
        return "\n".join([*lines, "</tu>\n"])

    def _row(self, number: int, passages: AlignedPassages) -> str:
        ids = self.source.ids[passages.link.source], self.target.ids[passages.link.target]
        texts = [text for _, text in self._texts(passages)]
        figures = f"{passages.score:.4f}", f"{passages.probability:.4f}"
        cells = (*texts, *figures, *ids, f"{passages.link.score:.9g}")
        # csv quotes a cell with a quotation mark, which readers would otherwise take for a quoted cell.
        line = io.StringIO()
        csv.writer(line, delimiter="\t", lineterminator="\n").writerow(map(spreadsheet_cell, cells))
        return line.getvalue()

    def _texts(self, passages: AlignedPassages) -> tuple[tuple[str, str], tuple[str, str]]:
        codes = self.source.language.code, self.target.language.code
        source, target = (
            ("" if code in UNSPACED else " ").join(parts)
            for code, parts in zip(codes, (passages.source, passages.target), strict=True)
        )
        return (codes[0], source), (codes[1], target)


def _put(file: IO[bytes], text: str) -> None:
    file.write(text.encode())


def _xml(text: str) -> str:
    """Return a text as XML; a character that XML cannot hold becomes �."""
    return escape(NOT_XML.sub("\ufffd", text))
