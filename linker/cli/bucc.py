"""`linker bucc prepare` and `linker bucc evaluate`: the shared task's data and its results table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linker.cli.common import AsJson, note, print_json


def prepare(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="Raw pages: JSON from wikiextractor, or JSONL.", show_default=False
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Raw pages in the other language.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the prepared data.", show_default=False)
    ],
    languages: Annotated[
        str, typer.Option(metavar="FR-EN", help="Codes of the two languages.", show_default=False)
    ],
    links: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Links: lines `source page TAB target page` (id or title). Default: the pages' langlinks field.",
            show_default=False,
        ),
    ] = None,
    back_links: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Reverse links: lines `target page TAB source page`.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the split and the ids.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Prepare raw pages for the task.

    They are linked both ways, without first sentences, of similar lengths and split in half.
    """
    from linker.crosslingual.bucc.prepare import prepare as run_prepare
    from linker.crosslingual.pages.pages import split_languages

    report = run_prepare(source, target, out, split_languages(languages), links, back_links, seed=seed)
    if as_json:
        print_json(report.to_dict())
    else:
        print(report.text(), end="")
    note(f"{out}: written")


def evaluate(
    qrels: Annotated[
        list[Path],
        typer.Argument(
            metavar="QRELS...", help="Gold links, one file per language (fr.test.txt).", show_default=False
        ),
    ],
    run: Annotated[
        list[Path],
        typer.Option(
            "--run", metavar="RUN", help="A run of one or more languages (repeatable).", show_default=False
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Evaluate runs of the task.

    Prints MRR, success at 1 and 5 and coverage, over all pages and over the answered ones.
    """
    from linker.crosslingual.bucc.table import evaluate_runs, to_text

    rows = evaluate_runs(qrels, run)
    if as_json:
        print_json([row.to_dict() for row in rows])
    else:
        print(to_text(rows), end="")
