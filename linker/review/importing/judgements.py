"""Add the judgements in a file to a ledger; other records go to a quarantine file, with line and reason."""

import contextlib
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from itertools import combinations
from pathlib import Path
from typing import Any

import orjson

from indexes.errors import Reason
from linker.base.errors import InputError
from linker.base.files import replacing
from linker.corpora import BadLine
from linker.corpora.dates import moment_of
from linker.review.exporting.rows import tags_of
from linker.review.importing.readers import Fields, Found, read_records
from linker.review.interface import VERDICTS, Judgement, Verdict
from linker.review.ledger import Ledger

Chosen = Mapping[str, str]  # field → the name of its column

# How people, ASReview and other tools spell verdicts.
WORDS: dict[str, Verdict] = {
    **{verdict: verdict for verdict in VERDICTS},
    **dict.fromkeys(("1", "1.0", "y", "yes", "true", "included", "include"), "relevant"),
    **dict.fromkeys(
        ("0", "0.0", "n", "no", "false", "not relevant", "irrelevant", "excluded", "exclude"), "not"
    ),
}
UNREAD = ("", "-1", "-1.0")  # spellings for a document that nobody has judged
# Names that other tools use for a field; the first of them that occurs in a file is read.
NAMES = {
    "seed": ("seed", "seed_id", "query", "topic"),
    "id": ("id", "_id", "document", "document_id", "record_id"),
    "note": ("note", "asreview_note"),
    "tags": ("tags", "asreview_tags"),
    "reviewer": ("reviewer", "asreview_user_name"),
    "time": ("time", "asreview_time"),
}
TAG = "asreview_tag_"  # prefix of ASReview's columns, which have a 1 if a tag is set
# Columns of verdicts. Those of linker and ASReview contain a reviewer's verdicts; the others may be prior labels of the
# documents, such as those of a benchmark, which ASReview's export keeps next to its own.
SAID = ("verdict", "asreview_label")
KNOWN = (
    "label", "relevance", "relevant", "included", "label_included", "final_included", "included_label",
    "included_final", "included_flag", "include",
)  # fmt: skip


def choose(path: Path, records: Iterable[Found], label: str = "", seed: str = "") -> Chosen:
    """Return the column of each field; `label` names the column of verdicts.

    Without `label`, a reviewer's verdicts take precedence. Raises InputError if the file has no records or no column of
    verdicts, if two columns of equal precedence disagree, or if there is neither a column of seeds nor `seed`.
    """
    columns: dict[str, None] = {}
    number = 0
    clashes: dict[tuple[str, str], int] = {}  # pairs of columns that disagree → first such line
    for number, _, fields in records:
        if isinstance(fields, str):
            continue
        columns |= dict.fromkeys(fields)
        for names in (SAID, KNOWN):
            for pair in combinations([name for name in names if name in fields], 2):
                if len({_verdict(fields, name) for name in pair}) > 1:
                    clashes.setdefault(pair, number)
    if not number:
        raise InputError(Reason(f"{path} is empty: it holds no judgements", "empty-file", name=path.name))
    choice = {name: next((n for n in names if n in columns), name) for name, names in NAMES.items()}
    if columns and not seed and choice["seed"] not in columns:
        raise InputError(f"{path} does not say which seed its judgements are for: name the seed with `seed`")
    return choice | {"verdict": _label(path, columns, clashes, label)}


def _label(path: Path, columns: Mapping[str, None], pairs: Mapping[tuple[str, str], int], label: str) -> str:
    if label:
        column = label if label in columns else label.strip().lower()
        if column not in columns:
            names = ", ".join(columns) or "none"
            raise InputError(f"{path} has no column {label!r} (`label`); its columns are: {names}")
        return column
    present = next(
        ([n for n in names if n in columns] for names in (SAID, KNOWN) if columns.keys() & {*names}), []
    )
    for (one, other), line in pairs.items():
        if one in present:
            raise InputError(
                f"{path}:{line}: the columns {one!r} and {other!r} disagree: say with `label` which one holds the "
                f"verdicts, for example `label` {one}"
            )
    if columns and not present:
        raise InputError(
            f"{path} has no column of verdicts, such as 'verdict': name it with `label`; its columns are: "
            f"{', '.join(columns)}"
        )
    return present[0] if present else "verdict"


def _verdict(fields: Fields, name: str) -> str:
    """Return a column's verdict, normalised so that the same verdicts are equal."""
    value = fields[name]
    text = str(int(value) if isinstance(value, bool) else "" if value is None else value).strip().lower()
    return "" if text in UNREAD else WORDS.get(text, text)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """How many judgements were added, how many were already in the ledger, and how many records were not used.

    `quarantined` records are invalid, and are in the file `quarantine`; `unread` documents have no verdict yet.
    """

    added: int
    present: int
    quarantined: int
    quarantine: Path | None
    unread: int = 0


class _BadRecordError(Exception):
    """A record is not a judgement; the message says why."""


def import_judgements(
    path: Path,
    ledger: Ledger,
    *,
    reviewer: str = "",
    seed: str = "",
    label: str = "",
    random: bool = False,
) -> ImportReport:
    """Add the judgements in a file, whose suffix selects one of `readers.READERS`, to the ledger, all or none.

    They are prior knowledge (phase "prior"), whatever the file says: its order is not evidence in this review. With
    `random`, its documents were drawn at random from all documents of the review, and each was judged ("control").
    `reviewer` and `seed` are used if a record names none; the default `seed` is the ledger's only one. `label` names
    the column of the verdicts. Judgements that are already in the ledger are not added again. Records that are not
    judgements go to NAME.quarantine.jsonl next to the ledger; NAME is the file's name. Raises InputError if the file
    cannot be read, its suffix is not known, its columns contradict each other, or the ledger has no such seed.
    """
    seeds = [s.id for s in ledger.seeds]
    if seed and seeds and seed not in seeds:
        raise InputError(
            f"there is no seed {seed!r} in {ledger.path}: choose one of {', '.join(seeds[:20])} with `seed`"
        )
    if not seed and len(seeds) == 1:
        seed = seeds[0]
    columns = choose(path, read_records(path), label, seed)
    history = ledger.history()
    undone = {entry.undoes for entry in history}
    standing = [e.judgement for e in history if e.undoes is None and e.number not in undone]
    known = {_identity(j) for j in standing} | {
        _identity(dataclasses.replace(j, time="")) for j in ledger.judgements()
    }
    additions, bad, present, unread = list[Judgement](), list[BadLine](), 0, 0
    for number, raw, fields in read_records(path):
        try:
            if isinstance(fields, str):
                raise _BadRecordError(fields)
            judgement = _judgement(fields, columns, reviewer, seed)
            if judgement is not None and seeds and judgement.seed not in seeds:
                raise _BadRecordError(f"there is no seed {judgement.seed!r} in the ledger")
        except _BadRecordError as e:
            bad.append(BadLine.of(path, number, str(e), raw))
            continue
        if judgement is None:
            unread += 1
        elif _identity(judgement) in known:
            present += 1
        else:
            additions.append(dataclasses.replace(judgement, phase="control") if random else judgement)
    ledger.add_all(additions)
    return ImportReport(len(additions), present, len(bad), quarantine(path, ledger, bad), unread)


def _judgement(fields: Fields, columns: Chosen, reviewer: str, seed: str) -> Judgement | None:
    """Return the judgement of a record, None if its document is unread. Raises _BadRecordError with the reason."""
    verdict = _text(fields, columns["verdict"]).strip().lower()
    if verdict in UNREAD and columns["verdict"] in fields:
        return None
    if verdict not in WORDS:
        known = ", ".join(VERDICTS)
        raise _BadRecordError(f"unknown verdict {verdict!r}: use one of {known}" if verdict else "no verdict")
    seed_id, id_ = _text(fields, columns["seed"]) or seed, _text(fields, columns["id"])
    if not id_ or not seed_id:
        raise _BadRecordError("no document id" if not id_ else "no seed: name it with `seed`")
    probability = _number(fields, "probability")
    if probability is not None and not 0 <= probability <= 1:
        raise _BadRecordError(f"the probability {probability:g} is not between 0 and 1")
    return Judgement(
        seed_id,
        id_,
        WORDS[verdict],
        _text(fields, columns["reviewer"]) or reviewer,
        _text(fields, columns["note"]),
        (*_tags(fields.get(columns["tags"])), *_set_tags(fields)),
        _number(fields, "score"),
        probability,
        _text(fields, "model"),
        "prior",
        _time(_text(fields, columns["time"])),
    )


def _text(fields: Fields, name: str) -> str:
    """Return a field as text, empty if it is missing. Raises _BadRecordError if it is not text."""
    value = fields.get(name)
    if value is None:
        return ""
    if isinstance(value, bool | int):
        value = str(int(value))
    if not isinstance(value, str):
        raise _BadRecordError(f"the {name} is {type(value).__name__}, not a string")
    with contextlib.suppress(UnicodeEncodeError):
        value.encode()
        return value
    raise _BadRecordError(f"the {name} is not valid Unicode")


def _number(fields: Fields, name: str) -> float | None:
    value = fields.get(name)
    if value in (None, ""):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise _BadRecordError(f"the {name} {str(value)[:50]!r} is not a number")
    return number


def _time(text: str) -> str:
    """Return a time as a ledger stores it; one without a time zone, such as those in ASReview's tables, is UTC."""
    if not text:
        return ""
    with contextlib.suppress(OverflowError):
        if moment := moment_of(text):
            return moment.astimezone(UTC).isoformat(timespec="milliseconds")
    raise _BadRecordError(f"the time {text[:50]!r} is not written as 2026-01-31 12:00:00")


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(tag, str) for tag in value):
        return tuple(value)
    if value is None or isinstance(value, str):
        return tags_of(value or "")
    raise _BadRecordError("the tags are not a list of strings")


def _set_tags(fields: Fields) -> list[str]:
    """Return the tags that are set according to ASReview's columns for tags."""
    return [
        n.removeprefix(TAG) for n, value in fields.items() if n.startswith(TAG) and str(value) in ("1", "1.0")
    ]


def _identity(judgement: Judgement) -> tuple[object, ...]:
    """Return what identifies a judgement, without its score and probability, of which XLSX keeps only 16 digits."""
    said = (judgement.seed, judgement.id, judgement.reviewer, judgement.verdict)
    return (*said, judgement.time, judgement.note, judgement.tags) if judgement.time else said


def quarantine(path: Path, ledger: Ledger, bad: list[BadLine]) -> Path | None:
    """Write the unusable records of a file next to a ledger, and return where; None if there are none."""
    if not bad:
        return None
    place = ledger.path.with_name(f"{path.name}.quarantine.jsonl")
    with replacing(place) as file:
        file.writelines(_lines(bad))
    return place


def _lines(bad: list[BadLine]) -> Iterator[bytes]:
    for line in bad:
        yield orjson.dumps(line.to_json(), option=orjson.OPT_APPEND_NEWLINE)
