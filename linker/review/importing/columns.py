"""Choose the columns of a file of judgements: for the whole file, since an empty cell is also a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

from linker.base.errors import InputError
from linker.review.importing.readers import Fields, Found
from linker.review.interface import VERDICTS, Verdict

Chosen = Mapping[str, str]  # field → the name of its column

# Spellings of verdicts by people, ASReview and other tools.
WORDS: dict[str, Verdict] = {
    **{verdict: verdict for verdict in VERDICTS},
    **dict.fromkeys(("1", "1.0", "y", "yes", "true", "included", "include"), "relevant"),
    **dict.fromkeys(
        ("0", "0.0", "n", "no", "false", "not relevant", "irrelevant", "excluded", "exclude"), "not"
    ),
}
UNREAD = ("", "-1", "-1.0")  # spellings for a document that nobody has judged
# Names under which other tools keep a field; the first one in the file counts.
NAMES = {
    "seed": ("seed", "seed_id", "query", "topic"),
    "id": ("id", "_id", "document", "document_id", "record_id"),
    "note": ("note", "asreview_note"),
    "tags": ("tags", "asreview_tags"),
    "reviewer": ("reviewer", "asreview_user_name"),
    "time": ("time", "asreview_time"),
}
TAG = "asreview_tag_"  # prefix of ASReview's columns that hold 1 where a tag is set
# Columns of verdicts. Ours and ASReview's hold a reviewer's verdicts; the others may be prior labels of the
# documents, such as those of a benchmark, which ASReview's export keeps next to its own.
SAID = ("verdict", "asreview_label")
KNOWN = (
    "label", "relevance", "relevant", "included", "label_included", "final_included", "included_label",
    "included_final", "included_flag", "include",
)  # fmt: skip


def choose(path: Path, records: Iterable[Found], label: str = "") -> Chosen:
    """Return the column of each field; `label` names the column of verdicts.

    Without it, a column of a reviewer's verdicts takes precedence. Raises InputError if no column is called `label`,
    or if two of equal rank disagree.
    """
    columns: dict[str, None] = {}
    apart: dict[tuple[str, str], int] = {}  # pairs of columns that disagree → first such line
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
    """Return a column's verdict, normalised so that the same verdicts are equal."""
    value = fields[name]
    text = str(int(value) if isinstance(value, bool) else "" if value is None else value).strip().lower()
    return "" if text in UNREAD else WORDS.get(text, text)
