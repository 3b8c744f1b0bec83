"""`linker align`: aligned passages of linked pages, as a translation memory or a table."""

from __future__ import annotations

from dataclasses import asdict

from linker.base.files import path_text
from linker.base.options import values
from linker.base.terminal import AsJson, note, print_json
from linker.crosslingual.options import AlignOptions


def align(options: AlignOptions, as_json: AsJson = False) -> None:
    """Export the aligned sentences of linked pages.

    The best link of each page counts. Sentences without a counterpart are left out and counted.

    Example: linker align links.run fr.jsonl en.jsonl --out memory.tmx
    """
    from linker.cli import commands

    result = commands.align(**values(options))
    if as_json:
        print_json({**asdict(result), "file": path_text(result.file)})
    note(
        f"{options.out}: {result.passages:,} pairs of {result.unit}s from {result.pages:,} pairs of pages; left out: "
        f"{result.below:,} pairs below --min-score, {result.source_skipped:,} source and "
        f"{result.target_skipped:,} target {result.unit}s without a counterpart"
    )
