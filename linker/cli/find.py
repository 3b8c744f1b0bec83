"""`linker find`: posts for seed articles, best first, until enough relevant ones have been judged."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linker.cli.common import AsJson, EncoderOption, Index, ModeOption, Where, note, one_line, print_json
from linker.files import path_text

if TYPE_CHECKING:
    from linker.corpora import Query
    from linker.engine import Engine
    from linker.review.finding import Candidate, FindReport, Verdict
    from linker.review.jsonl_ledger import Ledger


def find(
    directory: Index,
    seeds: Annotated[
        Path, typer.Option(metavar="FILE", help="Seed articles: JSONL, BEIR or TSV.", show_default=False)
    ],
    until: Annotated[int | None, typer.Option(min=1, help="Stop after this many relevant documents.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Stop below this score.")] = None,
    max_read: Annotated[int | None, typer.Option(min=1, help="Stop after this many judgements.")] = None,
    judgements: Annotated[
        Path | None,
        typer.Option(
            metavar="QRELS", help="Take judgements from this file instead of asking.", show_default=False
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File that keeps the judgements [default: the seed file's name + .ledger.jsonl]",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the relevant documents here (JSONL).", show_default=False),
    ] = None,
    mode: ModeOption = None,
    where: Where = None,
    encoder: EncoderOption = None,
    as_json: AsJson = False,
) -> None:
    """Find documents for seed texts, best first.

    It stops when enough relevant ones have been judged. On a terminal, answer y (relevant), n (not relevant), u (undo
    the last answer) or q (quit). A second call with the same ledger continues where the first one stopped.
    """
    from indexes.interface import Filter
    from linker.corpora import read_queries
    from linker.engine import Engine
    from linker.review import finding
    from linker.review.jsonl_ledger import Ledger

    engine = Engine.open(directory, encoder=encoder)
    queries = read_queries(seeds)
    ranked, degraded = finding.candidates(engine, queries, mode=mode, where=Filter.parse(where or ()))
    if degraded:
        note(f"degraded: {degraded}")
    seed_file = seeds.resolve()
    journal = Ledger(
        ledger or seed_file.with_name(seed_file.name + ".ledger.jsonl"), durable=judgements is None
    )
    judge = _from_file(judgements) if judgements else _from_terminal(engine, queries)
    report = finding.find(ranked, judge, journal, finding.StopRule(until, threshold, max_read))
    if out:
        _write_relevant(engine, journal, {q.id for q in queries}, out)
    _print_report(report, journal, out, as_json)


def _from_file(path: Path) -> Callable[[Candidate], Verdict]:
    """Return a judge that reads a qrels file; unjudged documents count as not relevant."""
    from linker.evaluation.reading.trec import read_qrels

    qrels = read_qrels(path)
    return lambda c: int(qrels.get(c.seed, {}).get(c.id, 0))


def _from_terminal(engine: Engine, seeds: list[Query]) -> Callable[[Candidate], Verdict]:
    """Return a judge that asks on the terminal, on stderr, so that stdout holds only results."""
    texts = {s.id: s.text for s in seeds}
    shown = ""
    answers: dict[str, Verdict] = {"y": 1, "n": 0, "u": "undo", "q": "quit"}
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")

    def judge(candidate: Candidate) -> Verdict:
        nonlocal shown
        if candidate.seed != shown:
            note(f"\n== seed {candidate.seed}: {one_line(texts[candidate.seed], 300)}")
            shown = candidate.seed
        document = engine.document(candidate.id)
        note(f"\n{candidate.score:9.4f}  {document.id}  {one_line(document.full_text, 1000)}")
        while True:
            print("relevant? [y/n/u/q] ", end="", file=sys.stderr, flush=True)
            try:
                line = sys.stdin.readline() if sys.stdin else ""
            except KeyboardInterrupt:
                note("")
                return "quit"
            if not line:
                return "no input"
            if (answer := line.strip().lower()[:1]) in answers:
                return answers[answer]
            note("y: relevant, n: not relevant, u: undo the last one, q: quit")

    return judge


def _write_relevant(engine: Engine, ledger: Ledger, seeds: set[str], out: Path) -> None:
    import orjson

    from linker.files import write_atomically

    lines = []
    for judgement in ledger.judgements:
        if judgement.relevance > 0 and judgement.seed in seeds and judgement.id in engine:
            text = engine.document(judgement.id).full_text
            lines.append(orjson.dumps(dataclasses.asdict(judgement) | {"text": text}) + b"\n")
    write_atomically(out, b"".join(lines))


def _print_report(report: FindReport, ledger: Ledger, out: Path | None, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(report) | {"ledger": path_text(ledger.path)})
        return
    score = "-" if report.score is None else f"{report.score:.6g}"
    print(f"read {report.read}, relevant {report.relevant}, stopped at score {score}: {report.stopped}")
    note(f"judgements are in {ledger.path}" + (f", the relevant documents in {out}" if out else ""))
