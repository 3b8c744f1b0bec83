"""`linker find`: documents for seed texts, best first, until enough relevant ones have been judged."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from indexes.showing import one_line
from linker.base.files import path_text
from linker.cli.columns import (
    Delimiter,
    Encoding,
    HeaderRow,
    IdColumn,
    MakeIds,
    Sheet,
    TextColumn,
    TitleColumn,
    columns_from,
    describe,
)
from linker.cli.common import AsJson, EncoderOption, ModeOption, Where, note, print_json

if TYPE_CHECKING:
    from linker.cli.commands.finding import Question
    from linker.review.session import Answer, FindReport

KEYS = "y: relevant, n: not relevant, m: maybe, s: skip, u: undo the last one, q: quit"


def find(
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Directory of the index, elastic+https://HOST:PORT/NAME, or several that are searched as one.",
            show_default=False,
        ),
    ],
    seeds: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Seed texts: JSONL, BEIR, TSV, CSV or XLSX.", show_default=False),
    ],
    until: Annotated[int | None, typer.Option(min=1, help="Stop after this many relevant documents.")] = None,
    per_seed: Annotated[bool, typer.Option(help="Count --until for each seed by itself.")] = False,
    static: Annotated[
        bool, typer.Option(help="Every seed has links of its own: merge their rankings, without feedback.")
    ] = False,
    order: Annotated[
        Literal["probability", "z", "rank"] | None,
        typer.Option(help="With --static, how rankings are merged. [default: probability if known, else z]"),
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="Recall at which the stopping rule stops.", show_default="0.9")
    ] = None,
    stop: Annotated[
        str | None,
        typer.Option(
            metavar="RULE", help="Stopping rule: urn, row, … (see docs/stopping.md).", show_default=False
        ),
    ] = None,
    audit: Annotated[
        bool,
        typer.Option(
            help="When the rule asks for no more, draw unread documents at random to bound what is left."
        ),
    ] = False,
    max_read: Annotated[int | None, typer.Option(min=1, help="Stop after this many judgements.")] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="With --static: leave out documents whose P(link) is lower.",
            show_default=False,
        ),
    ] = None,
    score: Annotated[
        float | None,
        typer.Option(help="With --static: leave out documents whose score is lower.", show_default=False),
    ] = None,
    judgements: Annotated[
        Path | None,
        typer.Option(
            metavar="QRELS", help="Take judgements from this file instead of asking.", show_default=False
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File of the judgements [default: the seed file's name + .review.sqlite]"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the relevant documents here: .csv, .xlsx, .jsonl, .qrels …",
            show_default=False,
        ),
    ] = None,
    reviewer: Annotated[str, typer.Option(help="Who judges.")] = "",
    mode: ModeOption = None,
    where: Where = None,
    encoder: EncoderOption = None,
    id_column: IdColumn = None,
    text_column: TextColumn = None,
    title_column: TitleColumn = None,
    make_ids: MakeIds = False,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    header_row: HeaderRow = None,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn at random.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Find documents for seed texts and learn from each verdict.

    All seeds describe one story; with --static, each has links of its own. It stops when the stopping rule estimates
    that the target recall is reached, or after --until or --max-read. On a terminal, answer y (relevant), n (not), m
    (maybe), s (skip, comes back last), u (undo) or q (quit). A second call with the same ledger continues.
    """
    if (per_seed or order or threshold is not None or score is not None) and not static:
        raise typer.BadParameter("--per-seed, --order, --threshold and --score need --static")
    if per_seed and until is None:
        raise typer.BadParameter("--per-seed needs --until")
    from linker.cli import commands
    from linker.cli.commands.finding import ledger_path

    columns = columns_from(
        directories, id_column, text_column, title_column, make_ids, encoding, delimiter, sheet, header_row
    )
    describe([seeds], columns)
    kept = ledger_path(ledger, seeds)
    try:
        report = commands.find(
            directories, seeds, None if judgements else _from_terminal(), judgements=judgements, until=until,
            per_seed=per_seed, static=static, order=order, target=target, stop=stop, audit=audit, max_read=max_read,
            threshold=threshold, score=score, ledger=ledger, out=out, reviewer=reviewer, mode=mode, where=where,
            encoder=encoder, columns=columns, seed=seed,
        )  # fmt: skip
    except KeyboardInterrupt:
        note(f"\njudgements are in {kept}; the same command continues")
        raise
    _print_report(report, kept, out, as_json)


def _from_terminal() -> Callable[[Question], Answer]:
    """Return a judge that asks on the terminal, on stderr, so that stdout holds only results."""
    shown = ""
    answers: dict[str, Answer] = {
        "y": "relevant", "n": "not", "m": "maybe", "s": "skip", "u": "undo", "q": "quit",
    }  # fmt: skip
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")

    def judge(question: Question) -> Answer:
        nonlocal shown
        if question.seed.id != shown:
            note(f"\n== seed {question.seed.id}: {one_line(question.seed.full_text, 300)}")
            shown = question.seed.id
        note(f"\n{_described(question)}")
        while True:
            print("relevant? [y/n/m/s/u/q/?] ", end="", file=sys.stderr, flush=True)
            try:
                line = sys.stdin.readline() if sys.stdin else ""
            except KeyboardInterrupt:
                note("")
                return "quit"
            if not line:
                return "no input"
            if (answer := line.strip().lower()[:1]) in answers:
                return answers[answer]
            note(KEYS)

    return judge


def _described(question: Question) -> str:
    candidate = question.candidate
    rank = f" #{candidate.rank}" if candidate.rank else ""
    known = "" if candidate.probability is None else f" P(link) {candidate.probability:.2f}"
    why = " (drawn at random)" if candidate.phase in ("audit", "control") else ""
    text = one_line(question.document.full_text, 1000)
    return f"[{candidate.id}{rank} {candidate.score:.3f}{known}]{why} {text}"


def _print_report(report: FindReport, ledger: Path, out: Path | None, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(report) | {"ledger": path_text(ledger)})
    else:
        print(f"read {report.read} of {report.what}, relevant {report.relevant}: {report.stopped}")
        if report.reason != report.stopped:
            note(report.reason)
    note(f"judgements are in {ledger}" + (f", the relevant documents in {out}" if out else ""))
