"""`linker link`, `group`, `triangulate` and `align`: which documents belong together, as runs and tables."""

from dataclasses import asdict
from pathlib import Path

from linker.base.files import path_text
from linker.base.options import values
from linker.base.terminal import AsJson, note, print_json, quantity
from linker.cli.columns import Tables
from linker.crosslingual.options import AlignOptions, LinkOptions, TriangulateOptions
from linker.engine.options import GroupOptions


def link(options: LinkOptions, tables: Tables, as_json: AsJson = False) -> None:
    """Link two collections, in one language or two.

    Links posts to articles, claims to fact checks, pages to translations: all texts are decided together. The run has
    lines `id1 X id2 rank score name`, best first.

    Example: linker link posts.jsonl articles.jsonl --out links.csv
    """
    from linker.cli.commands import linking

    links = linking.link(**values(options) | {"columns": tables.columns()})
    if as_json:
        sides = {"texts": links.texts, "targets": links.targets, "method": options.method}
        print_json({"run": path_text(Path(options.out or "")), **links.counts, **sides})
    note(
        f"{options.out}: {links.summary}, each to at most {min(options.k, links.targets)} of {links.targets:,}, "
        f"method {options.method}"
    )


def group(options: GroupOptions, tables: Tables, as_json: AsJson = False) -> None:
    """Group documents about one story, and near copies.

    Groups posts, articles and claims from one or more corpora. Every document is in one group; most are alone in it.

    Example: linker group posts.jsonl articles.csv --out groups.csv
    """
    from linker.cli.commands import grouping

    try:
        found = grouping.group(**values(options) | {"columns": tables.columns()})
    except KeyboardInterrupt:
        note(f"\n{options.out} is complete; run the same command again to continue" if options.follow else "")
        raise
    inside = sum(len(group.ids) for group in found.groups)
    copies = sum(member.near_copy_of is not None for member in found.members)
    if as_json:
        counts = {"documents": len(found.members), "groups": len(found), "grouped": inside}
        print_json({
            "out": path_text(Path(options.out or "")), **counts, "near_copies": copies, "recall": found.recall,
        })  # fmt: skip
    note(
        f"{options.out}: {inside:,} of {len(found.members):,} documents are in "
        f"{quantity(len(found), 'group')} of two or more; {quantity(copies, 'is a near copy', 'are near copies')}"
    )


def triangulate(options: TriangulateOptions, as_json: AsJson = False) -> None:
    """Join links through a third language (de-en, fr-en: de-fr).

    Links through a third language raise the probability of a direct link that they confirm, and lower it if they
    contradict the link. DIR then has a run for each pair of languages, and clusters.jsonl: at most one page per
    language in each cluster.

    Example: linker triangulate de-en=a.run en-fr=b.run --out triangles
    """
    from linker.cli.commands import triangulating

    found = triangulating.triangulate(**values(options))
    linked = {name: len(run) for name, run in found.runs.items()}
    if as_json:
        print_json({"out": path_text(Path(options.out or "")), "clusters": len(found), "linked": linked})
    counts = ", ".join(f"{name}: {quantity(count, 'page')}" for name, count in linked.items())
    note(f"{options.out}: {quantity(len(found), 'cluster')}; {counts}")


def align(options: AlignOptions, as_json: AsJson = False) -> None:
    """Export the aligned sentences of linked pages.

    The best link of each page counts. Sentences without a counterpart are left out and counted.

    Example: linker align links.run fr.jsonl en.jsonl --out memory.tmx
    """
    from linker.cli.commands import aligning

    result = aligning.align(**values(options))
    if as_json:
        print_json({**asdict(result), "file": path_text(result.file)})
    note(
        f"{options.out}: {result.passages:,} pairs of {result.unit}s from {result.pages:,} pairs of pages; left out: "
        f"{result.below:,} pairs below --min-score, {result.source_skipped:,} source and "
        f"{result.target_skipped:,} target {result.unit}s without a counterpart"
    )
