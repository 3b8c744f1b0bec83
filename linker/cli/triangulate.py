"""`linker triangulate`: consistent links between more than two languages, from runs of `linker link`."""

from __future__ import annotations

from pathlib import Path

from linker.base.files import path_text
from linker.base.options import values
from linker.base.terminal import AsJson, note, print_json
from linker.crosslingual.options import TriangulateOptions


def triangulate(options: TriangulateOptions, as_json: AsJson = False) -> None:
    """Join links through a third language (de-en, fr-en: de-fr).

    Links through a third language raise the probability of a direct link that they confirm, and lower it if they
    contradict the link. DIR then has a run for each pair of languages, and clusters.jsonl: at most one page per
    language in each cluster.

    Example: linker triangulate de-en=a.run en-fr=b.run --out triangles
    """
    from linker.cli import commands

    found = commands.triangulate(**values(options))
    linked = {name: len(run) for name, run in found.runs.items()}
    if as_json:
        print_json({"out": path_text(Path(options.out or "")), "clusters": len(found), "linked": linked})
    counts = ", ".join(f"{name}: {count:,} pages" for name, count in linked.items())
    note(f"{options.out}: {len(found):,} clusters; {counts}")
