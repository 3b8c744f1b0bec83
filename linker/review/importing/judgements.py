"""Add the judgements of a file to a ledger; what is none goes to a quarantine file, with line and reason."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import orjson

from linker.corpora import BadLine
from linker.files import replacing
from linker.review.exporting.cells import tags_of
from linker.review.importing.readers import Fields, read_records
from linker.review.interface import VERDICTS, Judgement, Phase, Verdict
from linker.review.ledger import Ledger
from linker.review.old_ledger import import_jsonl

# What people, ASReview and other tools write for a verdict.
WORDS: dict[str, Verdict] = {
    **{verdict: verdict for verdict in VERDICTS},
    **dict.fromkeys(("1", "y", "yes", "true", "included", "include"), "relevant"),
    **dict.fromkeys(("0", "n", "no", "false", "not relevant", "irrelevant", "excluded", "exclude"), "not"),
}
# Names under which other tools keep a field; the first one present counts.
NAMES = {
    "seed": ("seed", "seed_id", "query", "topic"),
    "id": ("id", "_id", "document", "document_id", "record_id"),
    "verdict": ("verdict", "label", "relevance", "relevant", "included", "asreview_label"),
}
PHASES: tuple[Phase, ...] = get_args(Phase)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """How many judgements were added, how many the ledger held already, and how many records were none, kept where."""

    added: int
    present: int
    quarantined: int
    quarantine: Path | None


class _BadRecordError(Exception):
    """A record is no judgement; the text says why."""


def import_judgements(path: Path, ledger: Ledger, *, reviewer: str = "", seed: str = "") -> ImportReport:
    """Add the judgements of a file (.csv, .tsv, .xlsx, .jsonl, .qrels or .ris) to the ledger, all or none.

    `reviewer` and `seed` stand where a record names none; without `seed`, it is the ledger's only one. Judgements
    that the ledger already holds are not added again. Records that are no judgements go to NAME.quarantine.jsonl
    beside the ledger, NAME being the file's. Raises InputError where the file cannot be read, or its suffix is not
    known.
    """
    if path.suffix.lower() == ".jsonl" and _is_old(path):
        return ImportReport(*import_jsonl(path, ledger, reviewer), 0, None)
    if not seed and len(seeds := ledger.seeds) == 1:
        seed = seeds[0].id
    standing = ledger.judgements()
    known = {_identity(j) for j in standing} | {_identity(dataclasses.replace(j, time="")) for j in standing}
    given, bad, present = list[Judgement](), list[BadLine](), 0
    for number, raw, fields in read_records(path):
        try:
            if isinstance(fields, str):
                raise _BadRecordError(fields)
            judgement = _judgement(fields, reviewer, seed)
        except _BadRecordError as e:
            bad.append(BadLine.of(path, number, str(e), raw))
            continue
        if _identity(judgement) in known:
            present += 1
        else:
            given.append(judgement)
    ledger.add_all(given)
    return ImportReport(len(given), present, len(bad), _quarantine(path, ledger, bad))


def _is_old(path: Path) -> bool:
    """Return whether a file of JSON lines is a ledger of before: its first object has relevance and score."""
    with contextlib.suppress(StopIteration, AttributeError):
        _, _, fields = next(read_records(path))
        return not isinstance(fields, str) and {"seed", "id", "relevance", "score"} <= fields.keys()
    return False


def _judgement(fields: Fields, reviewer: str, seed: str) -> Judgement:
    """Return the judgement of a record. Raises _BadRecordError, which says what is wrong with it."""
    verdict = _text(fields, "verdict").strip().lower()
    if verdict not in WORDS:
        known = ", ".join(VERDICTS)
        raise _BadRecordError(f"no verdict: {verdict!r} is none of {known}" if verdict else "no verdict")
    seed_id, id_ = _text(fields, "seed") or seed, _text(fields, "id")
    if not id_ or not seed_id:
        raise _BadRecordError("no id of a document" if not id_ else "no seed: name it with --seed-id")
    phase = _text(fields, "phase") or "queue"
    if phase not in PHASES:
        raise _BadRecordError(f"the phase {phase!r} is none of {', '.join(PHASES)}")
    return Judgement(
        seed_id,
        id_,
        WORDS[verdict],
        _text(fields, "reviewer") or reviewer,
        _text(fields, "note"),
        _tags(fields.get("tags")),
        _number(fields, "score"),
        _number(fields, "probability"),
        _text(fields, "model"),
        next(known for known in PHASES if known == phase),
        _text(fields, "time"),
    )


def _text(fields: Fields, name: str) -> str:
    """Return a field as text, empty where there is none. Raises _BadRecordError where it is no text."""
    value = next((fields[n] for n in NAMES.get(name, (name,)) if fields.get(n) not in (None, "")), "")
    if isinstance(value, bool | int):
        value = str(int(value))
    if not isinstance(value, str):
        raise _BadRecordError(f"the {name} is {type(value).__name__}, not a text")
    with contextlib.suppress(UnicodeEncodeError):
        value.encode()
        return value
    raise _BadRecordError(f"the {name} is not valid Unicode")


def _number(fields: Fields, name: str) -> float | None:
    value = fields.get(name)
    if value in (None, ""):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise _BadRecordError(f"the {name} {str(value)[:50]!r} is no number") from None


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(tag, str) for tag in value):
        return tuple(value)
    if value is None or isinstance(value, str):
        return tags_of(value or "")
    raise _BadRecordError("the tags are no list of texts")


def _identity(judgement: Judgement) -> tuple[object, ...]:
    """Return by what a judgement is known again: not by its numbers, of which XLSX keeps 16 digits."""
    said = (judgement.seed, judgement.id, judgement.reviewer, judgement.verdict)
    return (*said, judgement.time, judgement.note, judgement.tags) if judgement.time else said


def _quarantine(path: Path, ledger: Ledger, bad: list[BadLine]) -> Path | None:
    if not bad:
        return None
    place = ledger.path.with_name(f"{path.name}.quarantine.jsonl")
    with replacing(place) as file:
        file.writelines(_lines(bad))
    return place


def _lines(bad: list[BadLine]) -> Iterator[bytes]:
    for line in bad:
        yield orjson.dumps(line.to_json(), option=orjson.OPT_APPEND_NEWLINE)
