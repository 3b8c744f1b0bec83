"""Choose the columns of a file of judgements: for the whole file, since a record's empty cell is also an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

from linker.base.errors import InputError
from linker.review.importing.readers import Fields, Found
from linker.review.interface import VERDICTS, Verdict

Chosen = Mapping[str, str]  # the column of a field

# What people, ASReview and other tools write for a verdict.
WORDS: dict[str, Verdict] = {
    **{verdict: verdict for verdict in VERDICTS},
    **dict.fromkeys(("1", "1.0", "y", "yes", "true", "included", "include"), "relevant"),
    **dict.fromkeys(
        ("0", "0.0", "n", "no", "false", "not relevant", "irrelevant", "excluded", "exclude"), "not"
    ),
}
UNREAD = ("", "-1", "-1.0")  # what they write of a document that nobody has judged
# Names under which other tools keep a field; the first one in the file counts.
NAMES = {
    "seed": ("seed", "seed_id", "query", "topic"),
    "id": ("id", "_id", "document", "document_id", "record_id"),
    "note": ("note", "asreview_note"),
    "tags": ("tags", "asreview_tags"),
    "reviewer": ("reviewer", "asreview_user_name"),
    "time": ("time", "asreview_time"),
}
TAG = "asreview_tag_"  # begins the name of a column of ASReview's that holds 1 where a tag is set
# Columns of verdicts. Ours and ASReview's hold what a reviewer said; the others may be what was known of the documents
# before anyone read them, such as the labels of a benchmark, which ASReview's export keeps next to its own.
SAID = ("verdict", "asreview_label")
KNOWN = (
    "label", "relevance", "relevant", "included", "label_included", "final_included", "included_label",
    "included_final", "included_flag", "include",
)  # fmt: skip


def choose(path: Path, records: Iterable[Found], label: str = "") -> Chosen:
    """Return which column holds which field; `label` names that of the verdicts.

    Without it, a column that holds what a reviewer said counts before the others. Raises InputError if no column is
    called `label`, or where two of the same standing disagree.
    """
    columns: dict[str, None] = {}
    apart: dict[tuple[str, str], int] = {}  # pairs of columns that disagree, and in which line first
    for number, _, fields in records:
        if isinstance(fields, str):
            continue
        columns |= dict.fromkeys(fields)
        for names in (SAID, KNOWN):
            for pair in combinations([name for name in names if name in fields], 2):
                if len({_verdict(fields, name) for name in pair}) > 1:
                    apart.setdefault(pair, number)
    chosen = {name: next((n for n in names if n in columns), name) for name, names in NAMES.items()}
    return chosen | {"verdict": _label(path, columns, apart, label)}


def _label(path: Path, columns: Mapping[str, None], apart: Mapping[tuple[str, str], int], label: str) -> str:
    if label:
        wanted = label if label in columns else label.strip().lower()
        if wanted not in columns:
            names = ", ".join(columns) or "none"
            raise InputError(f"{path} has no column {label!r} (`label`); its columns are: {names}")
        return wanted
    present = next(
        ([n for n in names if n in columns] for names in (SAID, KNOWN) if columns.keys() & {*names}), []
    )
    for (one, other), line in apart.items():
        if one in present:
            raise InputError(
                f"{path}:{line}: the columns {one!r} and {other!r} disagree: name the one that holds the verdicts "
                f"with `label`, such as `label` {one}"
            )
    return present[0] if present else "verdict"


def _verdict(fields: Fields, name: str) -> str:
    """Return what a column says, so that two that say the same are equal."""
    value = fields[name]
    text = str(int(value) if isinstance(value, bool) else "" if value is None else value).strip().lower()
    return "" if text in UNREAD else WORDS.get(text, text)
