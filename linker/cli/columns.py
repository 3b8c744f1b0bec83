"""The options that say how tables of documents and queries are to be read; an index remembers its columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linker.cli.common import note

if TYPE_CHECKING:
    from linker.corpora import Columns

IdColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Name of the id column of a table [default: as the index was built, else id].",
        show_default=False,
    ),
]
TextColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Name of the text column of a table [default: as the index was built, else text].",
        show_default=False,
    ),
]
TitleColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Name of the title column, if there is one.", show_default=False),
]
MakeIds = Annotated[
    bool, typer.Option("--make-ids", help="Make ids from the content, for files that have none.")
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of the files [default: guessed for CSV and TSV, else UTF-8].",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER", help="What separates columns in CSV [default: guessed].", show_default=False
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Sheet of XLSX files [default: the first].", show_default=False),
]

HeaderRow = Annotated[
    int | None,
    typer.Option(
        "--header-row",
        metavar="NUMBER",
        min=1,
        help="Row of a table that names its columns; rows above it are left out [default: the first].",
        show_default=False,
    ),
]


def columns_from(
    index: Path | Sequence[Path] | None,
    id_column: str | None,
    text_column: str | None,
    title_column: str | None,
    make_ids: bool,
    encoding: str | None,
    delimiter: str | None,
    sheet: str | None,
    header_row: int | None,
    *,
    adding: bool = False,
) -> Columns:
    """Return how files are to be read: as the options say, else as the corpus of `index` was.

    With `adding`, they are documents, read exactly so; otherwise queries, in which the usual names count, too.
    """
    from linker.corpora import Columns
    from linker.corpora.dialects import check_delimiter, check_encoding

    before = remembered(index) if index else Columns()
    id_ = before.id if adding else before.id or "id"
    return Columns(
        None if make_ids else id_column or id_,
        text_column or before.text,
        title_column or before.title,
        encoding=check_encoding(encoding) if encoding else None,
        delimiter=check_delimiter(delimiter) if delimiter else None,
        sheet=sheet,
        header_row=header_row,
        usual=not adding,
    )


def remembered(index: Path | Sequence[Path]) -> Columns:
    """Return the columns that an index, or the first of several, was built from.

    Raises IndexesError where there is none.
    """
    from indexes.sharded import manifests_of
    from linker.corpora import Columns

    first, *_ = manifests_of(*([index] if isinstance(index, Path) else index))
    return Columns.remembered(first.build.columns)


def describe(paths: list[Path], columns: Columns | None) -> None:
    """Say on stderr how tables are written that are not plain UTF-8 with commas."""
    from linker.corpora.previews import describe as described

    for path in paths:
        if columns and not (columns.encoding or columns.delimiter) and (words := described(path)):
            note(words)
