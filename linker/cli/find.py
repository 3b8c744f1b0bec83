"""`linker find`: documents for seed texts, best first, until enough relevant ones have been judged."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from linker.cli.common import AsJson, EncoderOption, Index, ModeOption, Where, note, one_line, print_json
from linker.files import path_text

if TYPE_CHECKING:
    from linker.engine import Engine
    from linker.review.interface import Candidate, Seed
    from linker.review.ledger import Ledger
    from linker.review.session import Answer, FindReport, Review

KEYS = "y: relevant, n: not relevant, m: maybe, s: skip, u: undo the last one, q: quit"


def find(
    directory: Index,
    seeds: Annotated[
        Path, typer.Option(metavar="FILE", help="Seed texts: JSONL, BEIR or TSV.", show_default=False)
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
        bool, typer.Option(help="After the rule's estimate, draw unread documents at random to certify it.")
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
    seed: Annotated[int, typer.Option(help="Of everything that is drawn at random.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Find documents for seed texts, best first, and learn from each answer what to show next.

    All seeds describe one story; with --static, each has links of its own. It stops when the stopping rule estimates
    that the target recall is reached, or after --until or --max-read. On a terminal, answer y (relevant), n (not), m
    (maybe), s (skip, comes back last), u (undo) or q (quit). A second call with the same ledger continues.
    """
    from linker.engine import Engine
    from linker.review.exporting import check_suffix, export
    from linker.review.ledger import Ledger
    from linker.review.session import Limits
    from linker.review.session import find as read

    if (per_seed or order or threshold is not None or score is not None) and not static:
        raise typer.BadParameter("--per-seed, --order, --threshold and --score need --static")
    if per_seed and until is None:
        raise typer.BadParameter("--per-seed needs --until")
    if out:
        check_suffix(out)
    engine = Engine.open(directory, encoder=encoder)
    texts = _seeds(seeds, engine)
    with Ledger(_ledger_path(ledger, seeds), durable=judgements is None) as kept:
        _import_earlier(ledger, seeds, kept)
        settings = {
            "unit": "pairs" if static else "topic", "order": order or (None if static else "feedback"),
            "target": target, "rule": stop, "until": until, "per_seed": per_seed, "mode": mode,
            "where": list(where or ()), "seed": seed, "threshold": threshold, "score": score,
        }  # fmt: skip
        review = _opened(engine, kept, texts, settings)
        by_rule = stop is not None or target is not None or audit or not (static or until or max_read)
        judge = _from_file(judgements, review) if judgements else _from_terminal(engine, texts)
        try:
            report = read(review, judge, Limits(max_read, by_rule, audit), reviewer)
        except KeyboardInterrupt:
            note(f"\njudgements are in {kept.path}; the same command continues")
            raise
        if review.degraded:
            note(f"degraded: {review.degraded}")
        if out:
            export(kept, engine, out, verdicts=["relevant"], seeds={"", *(s.id for s in texts)})
        _print_report(report, kept, out, as_json)


def _seeds(path: Path, engine: Engine) -> list[Seed]:
    """Return the seeds of a file; one that has id and text of a document is that document."""
    from linker.corpora import read_queries
    from linker.review.interface import Seed

    def document(id_: str, text: str) -> str:
        same = id_ in engine and text.strip() in (engine.document(id_).text, engine.document(id_).full_text)
        return id_ if same else ""

    return [Seed(q.id, q.text, document=document(q.id, q.text)) for q in read_queries(path)]


def _ledger_path(given: Path | None, seeds: Path) -> Path:
    path = given or seeds.resolve().with_name(seeds.resolve().name + ".review.sqlite")
    return path.with_name(path.name + ".review.sqlite") if path.suffix == ".jsonl" else path


def _import_earlier(given: Path | None, seeds: Path, ledger: Ledger) -> None:
    """Take over the judgements of a ledger of before, one JSON object per line, the first time."""
    from linker.review.old_ledger import import_jsonl

    resolved = seeds.resolve()
    old = given if given and given.suffix == ".jsonl" else resolved.with_name(resolved.name + ".ledger.jsonl")
    if not old.exists() or ledger.settings.get("imported") == old.name:
        return
    count, _ = import_jsonl(old, ledger)
    ledger.set("imported", old.name)
    note(f"{count} judgements of {old} are now in {ledger.path}")


def _opened(engine: Engine, ledger: Ledger, seeds: list[Seed], settings: dict[str, Any]) -> Review:
    """Return the review of a ledger with these seeds and settings. Raises InputError where it has other seeds."""
    from linker.errors import InputError
    from linker.review.session import Review
    from linker.review.settings import Settings

    earlier = {s.id for s in ledger.seeds}
    if earlier and earlier.isdisjoint(s.id for s in seeds):
        raise InputError(f"{ledger.path} is the review of other seeds: name another file with --ledger")
    Settings.of({**ledger.settings, **settings})
    for key, value in settings.items():
        ledger.set(key, value)
    ledger.put_seeds(seeds)
    return Review(engine, ledger)


def _from_file(path: Path, review: Review) -> Callable[[Candidate], Answer]:
    """Return a judge that reads a qrels file (of a topic: relevant to any seed); what it does not name is "not"."""
    from linker.evaluation.reading.trec import read_qrels

    qrels = read_qrels(path)
    every = [seed.id for seed in review.seeds]

    def judge(candidate: Candidate) -> Answer:
        seeds = [candidate.seed] if review.settings.unit == "pairs" else every
        return "relevant" if any(qrels.get(s, {}).get(candidate.id, 0) > 0 for s in seeds) else "not"

    return judge


def _from_terminal(engine: Engine, seeds: list[Seed]) -> Callable[[Candidate], Answer]:
    """Return a judge that asks on the terminal, on stderr, so that stdout holds only results."""
    texts = {s.id: s.full_text for s in seeds}
    shown = ""
    answers: dict[str, Answer] = {
        "y": "relevant", "n": "not", "m": "maybe", "s": "skip", "u": "undo", "q": "quit",
    }  # fmt: skip
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")

    def judge(candidate: Candidate) -> Answer:
        nonlocal shown
        if candidate.seed != shown:
            note(f"\n== seed {candidate.seed}: {one_line(texts.get(candidate.seed, ''), 300)}")
            shown = candidate.seed
        rank = f" #{candidate.rank}" if candidate.rank else ""
        known = "" if candidate.probability is None else f" P(link) {candidate.probability:.2f}"
        text = one_line(engine.document(candidate.id).full_text, 1000)
        why = " (drawn at random)" if candidate.phase in ("audit", "control") else ""
        note(f"\n[{candidate.id}{rank} {candidate.score:.3f}{known}]{why} {text}")
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


def _print_report(report: FindReport, ledger: Ledger, out: Path | None, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(report) | {"ledger": path_text(ledger.path)})
    else:
        print(f"read {report.read} of {report.population}, relevant {report.relevant}: {report.stopped}")
        if report.reason != report.stopped:
            note(report.reason)
    note(f"judgements are in {ledger.path}" + (f", the relevant documents in {out}" if out else ""))
