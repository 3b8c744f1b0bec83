"""`linker group`: documents about one story, and near copies, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linker.base.files import path_text
from linker.cli import completion
from linker.cli.columns import (
    Delimiter,
    Encoding,
    HeaderRow,
    IdColumn,
    MakeIds,
    Sheet,
    TextColumn,
    TitleColumn,
    columns_from,
)
from linker.cli.common import AsJson, note, print_json


def group(
    corpora: Annotated[
        list[Path],
        typer.Argument(
            metavar="CORPUS...", help="Documents to group: files, folders or an index.", show_default=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="GROUPS",
            help="Write every document with its group here: .csv, .xlsx or .jsonl.",
            show_default=False,
        ),
    ],
    train: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Judged pairs to learn from: qrels, or a table of ids (.csv, .xlsx, .jsonl). Repeatable.",
            show_default=False,
        ),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(min=0, help="Link no documents whose dates are further apart.", show_default=False),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Keep groups while the precision of their pairs is certain to be at least this (with --train).",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write pairs drawn from the groups here, to be judged: .csv, .xlsx or .jsonl.",
            show_default=False,
        ),
    ] = None,
    update: Annotated[
        bool,
        typer.Option(
            "--update", help="Keep the numbers in GROUPS, and add what changed to GROUPS.changes.jsonl."
        ),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Write what holds each group together to GROUPS.explain.jsonl.")
    ] = False,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|PATH",
            help="An encoder that also finds pairs; an index's own is used without it.",
            show_default=False,
            autocompletion=completion.encoders,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of what is drawn.")] = 0,
    id_column: IdColumn = None,
    text_column: TextColumn = None,
    title_column: TitleColumn = None,
    make_ids: MakeIds = False,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    header_row: HeaderRow = None,
    as_json: AsJson = False,
) -> None:
    """Put documents about one story together, and near copies.

    Posts, articles and claims of one corpus or several. Every document is in one group; most are alone in theirs.
    """
    from linker.cli import commands

    columns = columns_from(
        None, id_column, text_column, title_column, make_ids, encoding, delimiter, sheet, header_row
    )
    found = commands.group(
        corpora, out, encoder=encoder, train=train or (), days=days, precision=precision, sample=sample,
        update=update, explain=explain, seed=seed, columns=columns,
    )  # fmt: skip
    inside = sum(len(group.ids) for group in found.groups)
    copies = sum(member.near_copy_of is not None for member in found.members)
    if as_json:
        counts = {
            "documents": len(found.members),
            "groups": len(found),
            "grouped": inside,
            "near_copies": copies,
        }
        print_json({"out": path_text(out), **counts})
    note(
        f"{out}: {inside:,} of {len(found.members):,} documents are in {len(found):,} groups of two or more; "
        f"{copies:,} are near copies"
    )
