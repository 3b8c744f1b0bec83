"""`linker group`: documents about one story, and near copies, as a table."""

from __future__ import annotations

from pathlib import Path

from linker.base.files import path_text
from linker.base.options import values
from linker.base.terminal import AsJson, note, print_json
from linker.cli.columns import Tables, describe
from linker.engine.options import GroupOptions


def group(options: GroupOptions, tables: Tables, as_json: AsJson = False) -> None:
    """Group documents about one story, and near copies.

    Groups posts, articles and claims from one or more corpora. Every document is in one group; most are alone in it.

    Example: linker group posts.jsonl articles.csv --out groups.csv
    """
    from linker.cli import commands
    from linker.cli.commands.given import paths

    columns = tables.columns()
    describe(paths(options.corpora), columns)
    try:
        found = commands.group(**values(options) | {"columns": columns})
    except KeyboardInterrupt:
        note(f"\n{options.out} is complete; the same command continues" if options.follow else "")
        raise
    inside = sum(len(group.ids) for group in found.groups)
    copies = sum(member.near_copy_of is not None for member in found.members)
    if as_json:
        counts = {
            "documents": len(found.members),
            "groups": len(found),
            "grouped": inside,
            "near_copies": copies,
            "recall": found.recall,
        }
        print_json({"out": path_text(Path(options.out or "")), **counts})
    note(
        f"{options.out}: {inside:,} of {len(found.members):,} documents are in {len(found):,} "
        f"{'group' if len(found) == 1 else 'groups'} of two or more; "
        f"{copies:,} {'is a near copy' if copies == 1 else 'are near copies'}"
    )
