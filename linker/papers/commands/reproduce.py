"""`linker reproduce`: a paper's tables, recomputed next to its published figures."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from linker.base.files import write_atomically
from linker.base.options import Opt
from linker.base.printable import print_for_programs
from linker.base.terminal import AsJson, note, print_json

DATA = "LINKER_SHARED_DATA"


def reproduce(
    paper: Annotated[
        Literal["ast", "semeval", "bucc", "cbg"],
        Opt(
            "ast: posts to articles by a star transformer; semeval: similar news; bucc: pages across languages; "
            "cbg: similar sentences.",
            "",
            metavar="PAPER",
        ),
    ],
    data: Annotated[
        Path | None,
        Opt(f"The paper's own data, or a set in its place. Default: the folder in {DATA}.", metavar="DIR"),
    ] = None,
    work: Annotated[
        Path | None,
        Opt(
            "Folder for models and figures; an interrupted run continues from it. Default: reproduce-PAPER.",
            metavar="DIR",
        ),
    ] = None,
    seeds: Annotated[int, Opt("Runs of each system that depends on chance.", low=1)] = 3,
    quick: Annotated[
        bool, Opt("Use a small part of the data, once: shows that it runs, but measures nothing.", "--quick")
    ] = False,
    out: Annotated[
        Path | None, Opt("Also write the tables: .md, .tex (booktabs) or .json.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the tables of a published paper.

    Prints the tables in Markdown, with the reasons why figures differ.

    Example: linker reproduce bucc --data pages --out bucc.tex
    """
    from linker.papers.reproduce.cells import run
    from linker.papers.reproduce.frame import FORMATS, as_markdown

    if out is not None and out.suffix not in FORMATS:
        known = ", ".join(FORMATS)
        raise typer.BadParameter(f"{out}: the suffix must name a format, one of {known}", param_hint="--out")
    folder = data or (Path(os.environ[DATA]) if os.environ.get(DATA) else None)
    if folder is None:
        raise typer.BadParameter(f"name the data folder, or set {DATA}", param_hint="--data")
    cells = work or Path(f"reproduce-{paper}")
    note(f"{cells}: keeps every finished cell")
    tables = run(paper, folder, cells, 1 if quick else seeds, quick=quick, log=note)
    if out is not None:
        write_atomically(out, FORMATS[out.suffix](tables).encode())
        note(f"{out}: written")
    if as_json:
        print_json(tables)
    else:
        print_for_programs(as_markdown(tables))
