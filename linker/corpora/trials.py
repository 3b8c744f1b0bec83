"""Preview a file before it is indexed: what it seems to contain, and what reading it gives."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from indexes.errors import Reason
from indexes.interface import Document
from linker.base.errors import InputError
from linker.corpora import asreview
from linker.corpora.dates import ISO, iso_date
from linker.corpora.dialects import kind_of, real_kind
from linker.corpora.previews import SAMPLE, Preview, as_text, table_preview
from linker.corpora.reading import read_corpus, read_lines_of
from linker.corpora.records import BadLine, Columns, without_repeats
from linker.corpora.roles import Role


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of reading a file: the first documents, and the unusable records, with reasons.

    `is_whole`: whether this is all of the file. `undated`: values in the date column that do not match the format;
    they stay as they are.
    """

    documents: Sequence[Document]
    bad: Sequence[BadLine]
    is_whole: bool
    undated: Sequence[str] = ()


def trial(path: Path, columns: Columns, most: int = 5000) -> Trial:
    """Read the first `most` records of a file as indexing would. Raises InputError like `read_corpus`."""
    records = without_repeats(path, read_lines_of(path, columns))
    found = list(itertools.islice(records, most))
    documents = [record for record in found if isinstance(record, Document)]
    bad = [record for record in found if isinstance(record, BadLine)]
    dated = any(name == "date" for _, name in columns.names)
    dates = [str(d.metadata.get("date") or "") for d in documents] if dated else []
    undated = [text for text in dates if text.strip() and iso_date(text, ISO) is None]
    return Trial(documents, bad, next(records, None) is None, undated)


def preview(
    path: Path,
    rows: int = 5,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
) -> Preview:
    """Return the apparent content of a CSV, TSV, XLSX, JSONL, RIS or NBIB file, from its first thousand records.

    Given arguments are not guessed. For an ASReview project, its dataset is used. Raises InputError if the file
    cannot be read, or is of another kind.
    """
    kind = kind_of(path.name)
    how = Columns(encoding=encoding, delimiter=delimiter, sheet=sheet, header_row=header_row)
    if kind == "references":
        return _of_references(path, rows)
    if kind == "asreview":
        with asreview.open_project(path) as project:
            return replace(_of_table(project.dataset, how, rows), path=path)
    return _of_table(path, how, rows)


def _of_table(path: Path, how: Columns, rows: int) -> Preview:
    kind = kind_of(path.name)
    if kind not in ("csv", "tsv", "xlsx", "jsonl"):
        raise InputError(f"{path} is not a table: give a .csv, .tsv, .xlsx or .jsonl file")
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    return table_preview(path, real_kind(path, kind), how, rows)


def _of_references(path: Path, rows: int) -> Preview:
    """Return the content of a RIS or NBIB file: its tags determine the roles, so there is nothing to choose."""
    read = itertools.islice(read_corpus(path), SAMPLE)
    documents = [record for record in read if isinstance(record, Document)]
    if not documents:
        raise InputError(Reason(f"{path} holds no records that can be read", "no-records", name=path.name))
    fields = [{"id": d.id, "title": d.title, "text": d.text, **d.metadata} for d in documents]
    records = [{name: as_text(value) for name, value in record.items()} for record in fields]
    names = list(dict.fromkeys(name for record in records for name in record))
    roles: dict[str, Role] = {"id": "id", "title": "title", "text": "text"}
    return Preview(path, "references", names, roles, records[:rows])
