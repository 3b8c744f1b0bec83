"""`linker link`: which documents of one collection belong to the texts of another, as a run or a table."""

from __future__ import annotations

from pathlib import Path

from linker.base.files import path_text
from linker.base.options import values
from linker.base.terminal import AsJson, note, print_json
from linker.cli.columns import Tables, describe
from linker.crosslingual.options import LinkOptions


def link(options: LinkOptions, tables: Tables, as_json: AsJson = False) -> None:
    """Link two collections, in one language or two.

    Links posts to articles, claims to fact checks, pages to translations: all texts are decided together. The run has
    lines `id1 X id2 rank score name`, best first.

    Example: linker link posts.jsonl articles.jsonl --out links.csv
    """
    from linker.cli import commands

    columns = tables.columns()
    describe([Path(options.source), Path(options.target)], columns)
    links = commands.link(**values(options) | {"columns": columns})
    if as_json:
        sides = {"texts": links.texts, "targets": links.targets, "method": options.method}
        print_json({"run": path_text(Path(options.out or "")), **links.counts, **sides})
    note(
        f"{options.out}: {links.summary}, each to at most {options.k} of {links.targets:,}, "
        f"method {options.method}"
    )
