"""`linker triangulate`: consistent links between more than two languages, from runs of `linker link`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from linker.base.files import path_text
from linker.base.options import Opt
from linker.base.terminal import AsJson, note, print_json


def triangulate(
    runs: Annotated[
        list[str],
        Opt(
            "Runs of auto or cascade. Languages: from RUN.json, or written before it, such as de-en=RUN.",
            "",
            metavar="RUN...",
        ),
    ],
    out: Annotated[Path, Opt("Write runs and clusters here.", metavar="DIR")],
    known: Annotated[
        list[str] | None,
        Opt("Links that are certain, such as those of --train. Repeatable.", metavar="DE-EN=QRELS"),
    ] = None,
    min_probability: Annotated[
        float, Opt("Minimum probability of a link that holds a cluster together.", low=0, high=1)
    ] = 0.5,
    k: Annotated[int, Opt("Targets per page.", "-k", low=1, high=100)] = 5,
    run_name: Annotated[str, Opt("Name of the runs, in their sixth column.")] = "triangles",
    as_json: AsJson = False,
) -> None:
    """Join links through a third language (de-en, fr-en: de-fr).

    Links through a third language raise the probability of a direct link that they confirm, and lower it if they
    contradict the link. DIR then has a run for each pair of languages, and clusters.jsonl: at most one page per
    language in each cluster.

    Example: linker triangulate de-en=a.run en-fr=b.run --out triangles
    """
    from linker.cli import commands

    found = commands.triangulate(
        runs, out, known=known or (), min_probability=min_probability, k=k, run_name=run_name
    )
    linked = {name: len(run) for name, run in found.runs.items()}
    if as_json:
        print_json({"out": path_text(out), "clusters": len(found), "linked": linked})
    counts = ", ".join(f"{name}: {count:,} pages" for name, count in linked.items())
    note(f"{out}: {len(found):,} clusters; {counts}")
