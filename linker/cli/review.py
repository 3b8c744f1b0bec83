"""`linker review …`: inspect a ledger, export and import its judgements, compare two reviewers."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from linker.base.files import path_text
from linker.base.options import Opt
from linker.base.printable import on_one_line
from linker.base.terminal import AsJson, note, print_json, print_result, quantity

if TYPE_CHECKING:
    from linker.review.ledger import Ledger
    from linker.review.session import Review

LedgerFile = Annotated[Path, Opt("The review's ledger (review.sqlite).", "", metavar="LEDGER")]
Reviewer = Annotated[str | None, Opt("Only this reviewer's judgements.", metavar="NAME")]


def export(
    ledger: LedgerFile,
    out: Annotated[Path, Opt(
        "The file to write; its suffix names the format: .csv, .xlsx, .jsonl, .qrels, .run, .ris, .asreview, "
        "or .svg and .txt for the PRISMA flow diagram.", "", metavar="OUT")],
    index: Annotated[Path | None, Opt(
        "The index, for the documents' texts and metadata.", metavar="DIR")] = None,
    reviewer: Reviewer = None,
    verdict: Annotated[Literal["relevant", "not", "maybe", "skip"] | None, Opt(
        "Only judgements with this verdict.")] = None,
    bom: Annotated[bool, Opt("Begin CSV with a byte order mark, for Excel.", "--bom/--no-bom")] = True,
    for_asreview: Annotated[bool, Opt(
        "Write every document of the index, the unread ones too, as ASReview reads them.", "--asreview")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Export the current judgements.

    The texts and metadata of seeds and documents are exported with them. With --asreview, CSV, XLSX and RIS have the
    content of ASReview's own exports; a project file (.asreview) always does.

    Example: linker review export review.sqlite judged.xlsx --index posts.index
    """
    from linker.engine.engine import Engine
    from linker.review.exporting import check_suffix
    from linker.review.exporting import export as write

    check_suffix(out)
    opened = _open(ledger)
    engine = Engine.open(index) if index else None
    report = write(
        opened, engine, out, reviewer=reviewer, verdicts=verdict and [verdict], bom=bom, for_asreview=for_asreview,
    )  # fmt: skip
    values = dataclasses.asdict(report) | {"path": path_text(report.path)}
    print_result(values, f"{out}: {report.rows:,} {report.what}", as_json)
    if report.without_document:
        why = "are not in the index" if index else "are left out: name the index with --index"
        note(f"the texts of {quantity(report.without_document, 'document')} {why}")
    if report.left_out:
        count = quantity(report.left_out, "judgement")
        note(f"{count} cannot be expressed in this format (maybe, skip, open conflicts, repeats)")
    if report.cut:
        cut = quantity(report.cut, "text was", "texts were")
        note(f"{cut} cut: an XLSX cell holds 32,767 characters; .csv and .jsonl hold all of them")


def import_(
    ledger: LedgerFile,
    source: Annotated[Path, Opt(
        "Judgements: .csv, .tsv, .xlsx, .jsonl, .qrels, .ris, .nbib or .asreview.", "", metavar="FILE")],
    reviewer: Annotated[str, Opt(
        "Who judged, if the file does not say.", metavar="NAME", default=False)] = "",
    seed: Annotated[str, Opt(
        "The seed, if the file does not say and the ledger has several.", "--seed-id", metavar="ID",
        default=False)] = "",
    label: Annotated[str, Opt(
        "The column of the verdicts, if several columns look like one.", metavar="COLUMN", default=False)] = "",
    random: Annotated[bool, Opt(
        "The documents were drawn at random from all, and all were judged: they count for the certificate.",
        "--random")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Add the judgements of a file to a ledger.

    If there is no ledger yet, one is created. The judgements are prior knowledge: they count as read and found, and
    their order says nothing about when to stop; but judgements from a random screening (--random) count for the
    certificate. Judgements that the ledger already holds are not added again. Invalid records go to a quarantine
    file.

    Example: linker review import review.sqlite judged.xlsx
    """
    from linker.review.importing import import_judgements
    from linker.review.importing.judgements import choose
    from linker.review.importing.readers import read_records
    from linker.review.ledger import Ledger

    if not ledger.exists():  # a file that cannot be used leaves no ledger
        choose(source, read_records(source), label, seed)
    report = import_judgements(
        source, Ledger(ledger), reviewer=reviewer, seed=seed, label=label, random=random
    )
    place = path_text(report.quarantine) if report.quarantine else None
    line = f"{ledger}: {report.added} judgements added, {report.present} were already there"
    print_result(dataclasses.asdict(report) | {"quarantine": place}, line, as_json)
    if report.unread:
        note(f"{report.unread} documents have no verdict, and count as unread")
    if report.quarantined:
        note(f"{report.quarantined} records are not judgements; they are in {place}, with the reasons")


def agreement(
    ledger: LedgerFile,
    first: Annotated[str, Opt("A reviewer; needed if there are more than two.", "", metavar="[FIRST]")] = "",
    second: Annotated[str, Opt("Another reviewer.", "", metavar="[SECOND]")] = "",
    as_json: AsJson = False,
) -> None:
    """Compare two reviewers: Cohen's kappa, and where they differ.

    To resolve a conflict, import a judgement of the reviewer "consensus".

    Example: linker review agreement review.sqlite anna ben
    """
    from linker.review.agreement import agreement as compare
    from linker.review.agreement import two_reviewers

    opened = _open(ledger)
    one, other = two_reviewers(opened.reviewers, first, second)
    by_document = opened.settings.get("unit") == "topic"
    found = compare(opened.judgements(), one, other, by_document=by_document)
    if as_json:
        print_json(found.record())
        return
    kappa = "-" if found.kappa is None else f"{found.kappa:.3f}"
    names = " and ".join(name or "(no name)" for name in (one, other))
    print(f"{names}: judged by both {found.both}, agreed {found.agreed}, kappa {kappa}")
    for conflict in found.conflicts:
        decided = conflict.resolution.verdict if conflict.resolution else "open"
        verdicts = f"{conflict.first.verdict}/{conflict.second.verdict}"
        print(on_one_line(f"{conflict.first.seed}  {conflict.first.id}  {verdicts}  {decided}"))


def status(
    ledger: LedgerFile,
    method: Annotated[bool, Opt(
        "Print the method note to publish, and what may not be claimed.", "--note")] = False,
    language: Annotated[Literal["en", "de", "es", "fr"], Opt("Language of the note.")] = "en",
    index: Annotated[Path | None, Opt(
        "The review's index, to report its progress. [default with --note: index next to the ledger]",
        metavar="DIR")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Show a ledger's seeds, judgements and settings.

    With --index, also the review's progress, what is certified, and which verdicts deserve a second look; with --note,
    its method note.

    Example: linker review status articles.jsonl.review.sqlite --index posts.index
    """
    opened = _open(ledger)
    if method:
        _print_note(opened, index or ledger.with_name("index"), language, as_json)
        return
    from linker.review.session.noting import facts_of

    standing = opened.judgements()
    counts: dict[str, Counter[str]] = {name: Counter() for name in opened.reviewers}
    for judgement in standing:
        counts[judgement.reviewer][judgement.verdict] += 1
    values: dict[str, Any] = {
        "seeds": len(opened.seeds),
        "judgements": len(standing),
        "documents": len({j.id for j in standing if j.verdict != "skip"}),
        "last": max((j.time for j in standing), default=None),
        "reviewers": counts,
        "settings": dict(opened.settings),
        "progress": facts_of(_review(opened, index)) if index else None,
    }
    if as_json:
        print_json(values)
        return
    for name in ("seeds", "judgements", "documents", "last"):
        print(f"{name:12} {'-' if values[name] is None else values[name]}")
    for name, verdicts in counts.items():
        line = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()) or "-"
        print(on_one_line(f"{'reviewer':12} {name or '(no name)'}: {line}"))
    progress = dict(values["progress"] or {})
    if progress.get("by_order"):
        progress["by_order"] = progress["by_order"]["claim"]
    doubts = [f"{doubt['id']} ({doubt['verdict']})" for doubt in progress.pop("doubts", ())]
    by_language = [
        f"{one['language']}: {one['read']} of {one['documents']} read, {one['relevant']} relevant"
        for one in progress.pop("languages", ())
    ]
    lists = {"languages": "; ".join(by_language) or None, "doubts": ", ".join(doubts) or None}
    for name, value in (values["settings"] | progress | lists).items():
        parts = value.items() if isinstance(value, dict) else ()
        text = ", ".join(f"{key} {part}" for key, part in parts) or ("-" if value is None else value)
        print(on_one_line(f"{name:12} {text}"))


def _review(ledger: Ledger, index: Path) -> Review:
    from linker.base.errors import InputError
    from linker.engine.engine import Engine
    from linker.review.session import Review

    if not index.exists():
        raise InputError(f"there is no index at {index}: name the review's index with --index")
    return Review(Engine.open(index), ledger)


def _print_note(ledger: Ledger, index: Path, language: str, as_json: bool) -> None:
    """Print the note on stdout and the cautions on stderr. Raises InputError if nothing was read."""
    from linker.base.errors import InputError
    from linker.review.session import note_of

    found = note_of(_review(ledger, index))
    if found is None:
        raise InputError(f"{ledger.path}: nothing has been read yet, so there is nothing to report")
    texts: list[str] = [found.text, *found.cautions]
    if language != "en":
        from linker.review.language import language as chosen

        texts = [chosen(language).sentence(text) for text in texts]
    if as_json:
        print_json({"note": texts[0], "cautions": texts[1:], "language": language})
        return
    print(texts[0])
    for caution in texts[1:]:
        note(f"- {caution}")


def _open(path: Path) -> Ledger:
    """Open an existing ledger. Raises InputError if there is none."""
    from linker.base.errors import InputError
    from linker.review.ledger import Ledger

    if not path.exists():
        raise InputError(f"there is no ledger {path}: name the review.sqlite of a review")
    return Ledger(path)
