"""`linker watch`: links of posts to seed texts, as the posts arrive."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from indexes.showing import one_line
from linker.base.files import path_text
from linker.cli.columns import IdColumn, TextColumn, TitleColumn, columns_from
from linker.cli.common import AsJson, EncoderOption, ModeOption, Where, note, print_json
from linker.cli.probability import Score

if TYPE_CHECKING:
    from linker.review.watching import Match


def watch(
    seeds: Annotated[
        list[Path],
        typer.Argument(
            metavar="SEEDS... POSTS",
            help="Index of the seed texts, or several; then the posts: a file of JSON lines, a pipe, or - for stdin.",
            show_default=False,
        ),
    ],
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Links of at least this P(link).", show_default="0.5"),
    ] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Best links where P(link) promises this precision.", show_default=False
        ),
    ] = None,
    score: Score = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Seeds that are looked at per post.")] = 10,
    mode: ModeOption = None,
    where: Where = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Read on as the file grows, until Ctrl-C.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append the links here, as JSON lines, instead of to stdout.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue after the last post whose links are in --out.")
    ] = False,
    quarantine: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Unusable lines [default: the name of --out or the posts + .quarantine.jsonl].",
            show_default=False,
        ),
    ] = None,
    encoder: EncoderOption = None,
    id_column: IdColumn = None,
    text_column: TextColumn = None,
    title_column: TitleColumn = None,
    as_json: AsJson = False,
) -> None:
    """Match posts against standing seed texts as they arrive.

    SEEDS is an index of articles or claims with a calibration (`linker calibrate`); seeds that are added or deleted
    meanwhile count from then on. With --out, an interrupted watch of a file continues with --resume: no link is lost or
    written twice. Malformed lines go to the quarantine file.
    """
    if len(seeds) < 2:
        raise typer.BadParameter("give the index of the seeds, then the posts (- is stdin)")
    *directories, posts = seeds
    from linker.cli import commands

    columns = columns_from(directories, id_column, text_column, title_column, False, None, None, None, None)
    try:
        report = commands.watch(
            directories, posts, None if out else _printer(as_json), threshold=threshold, precision=precision,
            score=score, k=k, mode=mode, where=where, follow=follow, out=out, resume=resume, quarantine=quarantine,
            encoder=encoder, columns=columns,
        )  # fmt: skip
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
        f"{report.posts:,} posts: {report.matches:,} links of {report.matched:,} posts to {report.seeds:,} seeds"
        + (f", in {out}" if out else "")
    )
    if report.quarantined:
        note(
            f"{report.quarantined:,} lines could not be used; they are in {report.quarantine}, with the reasons"
        )


def _printer(as_json: bool) -> Callable[[Match], None]:
    """Return what prints a match, so that a pipe gets it at once."""

    def shown(match: Match) -> None:
        if as_json:
            print_json(match.to_json())
            return
        how = f"{match.score:9.4f}" if match.probability is None else f"{match.probability:.3f}"
        print(f"{how}  {match.post.id}  {match.seed.id}  {one_line(match.post.full_text, 100)}", flush=True)

    return shown
