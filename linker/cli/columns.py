"""The options for reading tables of documents and queries; an index remembers its columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from linker.base.options import Opt
from linker.base.terminal import note

if TYPE_CHECKING:
    from linker.corpora import Columns

TABLES = "Tables"


# fmt: off
@dataclass(frozen=True, slots=True)
class Names:
    """The columns of a table and their roles."""

    id_column: Annotated[str | None, Opt(
        "Name of the id column of a table [default: as the index was built, else id].", group=TABLES,
        metavar="NAME")] = None
    text_column: Annotated[str | None, Opt(
        "Name of the text column of a table [default: as the index was built, else text].", group=TABLES,
        metavar="NAME")] = None
    title_column: Annotated[str | None, Opt(
        "Name of the title column, if there is one.", group=TABLES, metavar="NAME")] = None

    def columns(self, index: Path | Sequence[Path] | None = None, *, adding: bool = False) -> "Columns":
        """Return the columns by which to read files: those named by options, else those from which `index` was built.

        With `adding`, the files hold documents, and only these columns are used; otherwise they hold queries, and the
        usual names of columns are recognised, too.
        """
        from linker.corpora import Columns

        before = stored_columns(index) if index else Columns()
        id_ = before.id if adding else before.id or "id"
        text, title = self.text_column or before.text, self.title_column or before.title
        return Columns(self.id_column or id_, text, title, usual=not adding)


@dataclass(frozen=True, slots=True)
class Tables(Names):
    """Columns, and the format of tables."""

    make_ids: Annotated[bool, Opt("Make ids from the content, for files that have none.", group=TABLES)] = False
    encoding: Annotated[str | None, Opt(
        "Encoding of the files [default: guessed for CSV and TSV, else UTF-8].", group=TABLES,
        metavar="NAME")] = None
    delimiter: Annotated[str | None, Opt(
        "Column separator in CSV [default: guessed].", group=TABLES, metavar="CHARACTER")] = None
    sheet: Annotated[str | None, Opt(
        "Sheet of XLSX files [default: the first with records].", group=TABLES, metavar="NAME")] = None
    header_row: Annotated[int | None, Opt(
        "Row of a table that names its columns; rows above it are left out [default: guessed].", group=TABLES,
        metavar="NUMBER", low=1)] = None

    def columns(self, index: Path | Sequence[Path] | None = None, *, adding: bool = False) -> "Columns":
        """Return the columns and formats by which to read files. Raises InputError for an unknown encoding or
        delimiter."""
        from dataclasses import replace

        from linker.corpora.dialects import check_delimiter, check_encoding

        named = Names.columns(self, index, adding=adding)
        return replace(
            named,
            id=None if self.make_ids else named.id,
            encoding=check_encoding(self.encoding) if self.encoding else None,
            delimiter=check_delimiter(self.delimiter) if self.delimiter else None,
            sheet=self.sheet,
            header_row=self.header_row,
        )
# fmt: on


def stored_columns(index: Path | Sequence[Path]) -> "Columns":
    """Return the columns that an index, or the first of several, was built from.

    Raises IndexesError if there is no index.
    """
    from indexes.sharded import manifests_of
    from linker.corpora import Columns

    first, *_ = manifests_of(*([index] if isinstance(index, Path) else index))
    return Columns.remembered(first.build.columns)


def describe(paths: Sequence[Path], columns: "Columns", *, queries: bool = False) -> None:
    """Report on stderr what was guessed about tables."""
    from linker.corpora.guessing import describe as described

    for path in paths:
        if words := described(path, columns, queries=queries):
            note(words)
