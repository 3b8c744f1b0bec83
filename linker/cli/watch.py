"""`linker watch`: links of posts to seed texts, as the posts arrive."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from indexes.showing import one_line
from linker.base.files import path_text
from linker.base.options import Opt, values
from linker.base.terminal import AsJson, note, print_json, quantity
from linker.cli.columns import Names
from linker.review.options import MatchOptions

if TYPE_CHECKING:
    from linker.review.watching import PostMatch


def watch(
    seeds: Annotated[list[Path], Opt(
        "One or more indexes of the seed texts, then the posts: a file of JSON lines, a pipe, or - for stdin.",
        "", metavar="SEEDS... POSTS")],
    options: MatchOptions,
    names: Names,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Match posts against standing seed texts as they arrive.

    SEEDS is an index of articles or claims with a calibration (`linker calibrate`); seeds added or deleted meanwhile
    take effect from then on. With --out, an interrupted watch of a file continues with --resume: no link is lost or
    written twice. Malformed lines go to the quarantine file.

    Example: linker watch claims.index posts.jsonl --follow --out links.jsonl
    """
    if len(seeds) < 2:
        raise typer.BadParameter("give the index of the seeds, then the posts (- is stdin)")
    *directories, posts = seeds
    from linker.cli.commands import watching

    out, printer = options.out, None if options.out else _printer(as_json)
    given = values(options) | {"columns": names.columns(directories)}
    try:
        report = watching.watch(directories, posts, printer, **given)
    except KeyboardInterrupt:
        note(
            f"\n{out} is complete up to the last post read; the same command with --resume continues"
            if out
            else ""
        )
        raise
    if out and as_json:
        print_json(dataclasses.asdict(report) | {"quarantine": path_text(report.quarantine)})
    note(
        f"{quantity(report.posts, 'post')}: {quantity(report.matches, 'link')} of {quantity(report.matched, 'post')} "
        f"to {quantity(report.seeds, 'seed')}" + (f", in {out}" if out else "")
    )
    if report.quarantined:
        lines = quantity(report.quarantined, "line could not be used", "lines could not be used")
        note(f"{lines}: see {report.quarantine}, with the reasons")


def _printer(as_json: bool) -> Callable[[PostMatch], None]:
    """Return a function that prints a match and flushes, so that a pipe gets it at once."""

    def shown(match: PostMatch) -> None:
        if as_json:
            print_json(match.to_json())
            return
        how = f"{match.score:9.4f}" if match.probability is None else f"{match.probability:.3f}"
        print(f"{how}  {match.post.id}  {match.seed.id}  {one_line(match.post.full_text, 100)}", flush=True)

    return shown
