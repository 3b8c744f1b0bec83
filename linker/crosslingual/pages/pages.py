"""Pages of one language: ids, texts, and the page × term matrix."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xxhash
from scipy.sparse import csr_array

from indexes.dtypes import Int32Array, Int64Array
from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.logs import logger
from linker.base.terminal import quantity
from linker.corpora import BadLine, Columns
from linker.corpora.dictionaries import Dictionary, read_dictionary
from linker.corpora.languages import CODES, guess_language
from linker.corpora.reading import read_lines_of
from linker.corpora.records import report_skipped, without_repeats
from linker.crosslingual.pages.chunks import in_chunks
from linker.crosslingual.pages.languages import Language, language

UNKNOWN = "und"
LOOKED_AT = 100  # documents whose metadata are searched for the language
LANGUAGE_FIELDS = ("language", "lang")
PLACES = 1 << 24  # matrix values counted at a time


@dataclass(frozen=True, eq=False)
class Terms:
    """Term counts: a sorted `vocabulary` of v strings; `counts` int32 CSR [pages, v], sorted, without zeros.

    `background`: how many pages of an earlier collection contain each term, int64 [v], and the number of its pages.
    """

    vocabulary: tuple[str, ...]
    counts: csr_array
    background: tuple[Int64Array, int] | None = None

    @cached_property
    def present(self) -> csr_array:
        """1.0 where a page contains a term: float32 CSR [pages, v]."""
        ones = np.ones(self.counts.nnz, np.float32)
        return csr_array((ones, self.counts.indices, self.counts.indptr), shape=self.counts.shape)

    @cached_property
    def document_frequency(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Number of pages that contain each term: int64 [v]."""
        return column_sizes(self.counts)

    @cached_property
    def position(self) -> dict[str, int]:
        """Column of each term."""
        return {term: i for i, term in enumerate(self.vocabulary)}

    def common(self, other: Terms) -> tuple[list[int], list[int]]:
        """Return the columns, here and in `other`, of the terms of both vocabularies, in alphabetical order."""
        shared = sorted(self.position.keys() & other.position.keys())
        return [self.position[term] for term in shared], [other.position[term] for term in shared]

    def rows(self, rows: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]) -> Terms:
        """Return the counts of the pages `rows` (int64 [n]) over the same vocabulary."""
        return Terms(self.vocabulary, self.counts[np.asarray(rows, np.int64)], self.background)


def column_sizes(matrix: csr_array) -> Int64Array:
    """Return the number of values in each column [v]; numpy alone would copy all indices as int64."""
    sizes = np.zeros(matrix.shape[1], np.int64)
    for begin in range(0, matrix.nnz, PLACES):
        sizes += np.bincount(matrix.indices[begin : begin + PLACES], minlength=matrix.shape[1])
    return sizes


def narrow(begins: Int64Array) -> Int32Array | Int64Array:
    """Return the row pointers of a CSR matrix as int32 if they fit; for int64, scipy makes int64 columns, too."""
    return begins.astype(np.int32) if begins[-1] < 1 << 31 else begins


def count_terms(texts: Sequence[str], split: Callable[[str], Iterable[str]]) -> Terms:
    """Count the terms that `split`, which must be picklable, returns for each text; many are counted in parallel."""
    position: dict[str, int] = {}
    columns, counts, lengths = [], [], [np.zeros(1, np.int64)]
    for part in in_chunks(partial(_count, split), texts):
        numbers = [position.setdefault(term, len(position)) for term in part.vocabulary]
        columns.append(np.array(numbers, np.int32)[part.columns])
        counts.append(part.counts)
        lengths.append(part.lengths)
    order = sorted(position)
    renumber = np.empty(len(order), np.int32)
    renumber[[position[term] for term in order]] = np.arange(len(order), dtype=np.int32)
    pointers = np.cumsum(np.concatenate(lengths))
    indices, data = np.empty(pointers[-1], np.int32), np.empty(pointers[-1], np.int32)
    stop = pointers[-1]
    while columns:  # frees each part once copied: n-grams of many pages take gigabytes
        places = slice(stop - len(columns[-1]), stop)
        indices[places], data[places] = renumber[columns.pop()], counts.pop()
        stop = places.start
    matrix = csr_array((data, indices, narrow(pointers)), shape=(len(pointers) - 1, len(order)))
    matrix.sort_indices()
    return Terms(tuple(order), matrix)


class _TextCounts(NamedTuple):
    """Term counts of some texts, text by text: `columns` in `vocabulary` and `counts`; `lengths`: terms per text."""

    vocabulary: list[str]
    columns: Int32Array
    counts: Int32Array
    lengths: Int64Array


def _count(split: Callable[[str], Iterable[str]], texts: Sequence[str]) -> _TextCounts:
    position: dict[str, int] = {}
    columns, counts = [], []
    for text in texts:
        numbers = [position.setdefault(term, len(position)) for term in split(text)]
        unique, count = np.unique(np.array(numbers, np.int32), return_counts=True)
        columns.append(unique)
        counts.append(count.astype(np.int32))
    lengths = np.array([len(c) for c in columns], np.int64)
    return _TextCounts(list(position), np.concatenate(columns), np.concatenate(counts), lengths)


@dataclass(frozen=True, eq=False)
class Pages:
    """Pages of one language; `skipped` holds the records that could not be read as pages."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    language: Language
    skipped: tuple[BadLine, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def terms(self) -> Terms:
        """Counts of the stems of the pages' words: [pages, v]."""
        return count_terms(self.texts, self.language.terms)

    @cached_property
    def position(self) -> dict[str, int]:
        """Row of each id."""
        return {id_: i for i, id_ in enumerate(self.ids)}

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """A hash of each page's text, in hexadecimal."""
        texts = (text.encode("utf-8", "surrogatepass") for text in self.texts)
        return tuple(xxhash.xxh3_128_hexdigest(text) for text in texts)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The digest of each page, with a number after it if an earlier page has the same text."""
        often: Counter[str] = Counter()
        keys = []
        for digest in self.digests:
            keys.append(f"{digest} {often[digest]}" if often[digest] else digest)
            often[digest] += 1
        return tuple(keys)

    def at(self, rows: Sequence[int]) -> Pages:
        """Return the pages `rows`, in this order."""
        ids, texts = (tuple(values[i] for i in rows) for values in (self.ids, self.texts))
        return Pages(ids, texts, self.language, self.skipped)


def read_documents(
    path: Path, columns: Columns | None = None
) -> tuple[dict[str, Document], tuple[BadLine, ...]]:
    """Return the documents of a corpus by id, and the records that cannot be used. Raises InputError."""
    documents: dict[str, Document] = {}
    skipped: list[BadLine] = []
    for record in without_repeats(path, read_lines_of(path, columns)):
        if isinstance(record, BadLine):
            skipped.append(record)
        else:
            documents[record.id] = record
    if not documents:
        raise InputError(f"{path}: no text could be read; the first reason: {skipped[0].reason}")
    return documents, tuple(skipped)


def language_of(path: Path, documents: Mapping[str, Document]) -> str:
    """Return the code in the pages' metadata (`language` or `lang`) or the name of the file ("fr.jsonl"), or "und"."""
    return _from_metadata(documents.values()) or _from_name(path) or UNKNOWN


def read_pages(path: Path, code: str | None = None) -> Pages:
    """Read the pages of a file or folder, as `read_documents` does; their language is `code` or the one they name."""
    documents, skipped = read_documents(path)
    return pages_from(documents, code or language_of(path, documents), skipped)


def pages_from(documents: Mapping[str, Document], code: str, skipped: tuple[BadLine, ...] = ()) -> Pages:
    """Return documents as pages in the language `code`; "und" stands for the language that their words show, if any."""
    texts = tuple(d.full_text for d in documents.values())
    if code == UNKNOWN:
        code = CODES.get(guess_language(texts) or "", UNKNOWN)
    return Pages(tuple(documents), texts, language(code), skipped)


def split_languages(pair: str) -> tuple[str, str]:
    """Split a pair such as "fr-en" into its two codes. Raises InputError if it has another form."""
    codes = pair.split("-")
    if len(codes) != 2 or not all(
        code.isalpha() and code.isascii() and len(code) in (2, 3) for code in codes
    ):
        raise InputError(
            f"invalid language pair {pair!r}: give two codes of ISO 639, source first, such as fr-en; not names such "
            "as french-english, whose rules would not be found"
        )
    return codes[0], codes[1]


def _from_metadata(documents: Iterable[Document]) -> str | None:
    for document in islice(documents, LOOKED_AT):
        for name in LANGUAGE_FIELDS:
            value = document.metadata.get(name)
            if isinstance(value, str) and value.strip():
                return value.strip()
    return None


def _from_name(path: Path) -> str | None:
    stem = path.name.partition(".")[0]
    return stem if re.fullmatch(r"[a-z]{2}", stem) else None


def pages_of(path: str | Path, code: str | None) -> Pages:
    """Read the pages of a file or folder. Raises the same InputErrors as `read_pages`."""
    pages = read_pages(Path(path), code)
    logger.info("%s: %s, language %s", path, quantity(len(pages), "page"), pages.language.code)
    report_skipped(pages.skipped)
    return pages


def dictionary_of(path: str | Path) -> Dictionary:
    """Read a dictionary. Raises the same InputErrors as `read_dictionary`."""
    dictionary = read_dictionary(Path(path))
    logger.info("%s: %s, read as %s", path, quantity(len(dictionary.pairs), "pair"), dictionary.format)
    report_skipped(dictionary.skipped)
    return dictionary
