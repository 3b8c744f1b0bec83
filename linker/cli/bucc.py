"""`linker bucc prepare` and `linker bucc evaluate`: the shared task's data and its table of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linker.cli.common import AsJson, note, print_json


def prepare(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="Raw pages: wikiextractor's JSON or JSONL.", show_default=False
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Raw pages of the other language.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Write the data here.", show_default=False)],
    languages: Annotated[
        str, typer.Option(metavar="FR-EN", help="Codes of both languages.", show_default=False)
    ],
    links: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Links, source page TAB target page (id or title). Default: the pages' own field langlinks.",
            show_default=False,
        ),
    ] = None,
    back_links: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Links back, target page TAB source page.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split and of the ids.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Make the task's form of raw pages: linked both ways, no first sentence, like lengths, split in halves."""
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
            metavar="QRELS...", help="Gold links, a file a language (fr.test.txt).", show_default=False
        ),
    ],
    run: Annotated[
        list[Path],
        typer.Option(
            "--run", metavar="RUN", help="Repeatable: a run of one or more languages.", show_default=False
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Print reciprocal rank, success at 1 and 5 and coverage of runs, over all pages and over those answered."""
    from linker.crosslingual.bucc.table import evaluate_runs, to_text

    rows = evaluate_runs(qrels, run)
    if as_json:
        print_json([row.to_dict() for row in rows])
    else:
        print(to_text(rows), end="")
