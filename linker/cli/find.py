"""`linker find`: documents for seed texts, best first, until enough relevant ones have been judged."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from indexes.showing import one_line
from linker.base.files import path_text
from linker.base.options import values
from linker.base.terminal import AsJson, note, print_json
from linker.cli.columns import Tables, describe
from linker.review.options import FindOptions

if TYPE_CHECKING:
    from linker.review.options import Question
    from linker.review.session import Answer, FindReport

KEYS = "y: relevant, n: not relevant, m: maybe, s: skip, u: undo the last one, q: quit"


def find(options: FindOptions, tables: Tables, as_json: AsJson = False) -> None:
    """Find documents for seed texts and learn from each verdict.

    All seeds describe one story; with --static, each has its own links. It stops when the stopping rule estimates
    that the target recall is reached, or after --until or --max-read. On a terminal, answer y (relevant), n (not), m
    (maybe), s (skip, comes back last), u (undo) or q (quit). A second call with the same ledger continues.

    Example: linker find posts.index --seeds articles.jsonl --out relevant.csv
    """
    from linker.cli.commands import finding

    directories, seeds = cast(list[Path], options.directory), cast(Path, options.seeds)
    columns = tables.columns(directories)
    describe([seeds], columns, queries=True)
    kept = finding.ledger_path(options.ledger, seeds)
    judge = None if options.judgements else _from_terminal()
    try:
        report = finding.find(**values(options) | {"judge": judge, "columns": columns})
    except KeyboardInterrupt:
        note(f"\njudgements are in {kept}; run the same command again to continue")
        raise
    _print_report(report, kept, options.out, as_json)


def _from_terminal() -> Callable[[Question], Answer]:
    """Return a judge that asks on the terminal via stderr, so that stdout holds only results."""
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
        note(f"\n{_description(question)}")
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


def _description(question: Question) -> str:
    candidate = question.candidate
    rank = f" #{candidate.rank}" if candidate.rank else ""
    known = "" if candidate.probability is None else f" P(link) {candidate.probability:.2f}"
    why = " (drawn at random)" if candidate.phase in ("audit", "front", "control") else ""
    text = one_line(question.document.full_text, 1000)
    return f"[{candidate.id}{rank} {candidate.score:.3f}{known}]{why} {text}"


def _print_report(report: FindReport, ledger: Path, out: str | Path | None, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(report) | {"ledger": path_text(ledger)})
    else:
        print(f"read {report.read} of {report.what}, relevant {report.relevant}: {report.stopped}")
        if report.reason != report.stopped:
            note(report.reason)
        for one in report.languages:
            note(f"{one.language}: read {one.read} of {one.documents}, relevant {one.relevant}")
    note(f"judgements are in {ledger}" + (f", the relevant documents in {out}" if out else ""))
