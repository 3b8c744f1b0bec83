"""Write the user's own spreadsheet again, with its columns unchanged and its rows' judgements in additional ones."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from linker.base.errors import InputError
from linker.base.files import replacing
from linker.corpora import Columns
from linker.corpora.originals import originals
from linker.review.exporting.rows import Cell
from linker.review.exporting.writing import cells_to_csv, cells_to_xlsx
from linker.review.interface import Judgement, Verdict
from linker.review.rows.states import Decided

LINE = 200  # maximum length in characters of a text that serves as a title
ADDED = ("verdict", "match", "probability", "reviewer", "time", "note", "match id")
# If a row has several verdicts, the first of these counts.
STRENGTH: tuple[Verdict, ...] = ("relevant", "maybe", "not", "skip")


@dataclass(frozen=True, slots=True)
class Added:
    """The additional columns: their names, and the cells of a row by the id of its document or seed."""

    names: Sequence[str]
    cells: Mapping[str, Sequence[Cell]]


def of_judgements(
    judgements: Iterable[Judgement],
    *,
    by_seed: bool,
    name_of: Callable[[str], str],
    words: Mapping[str, str],
    chances: Mapping[tuple[str, str], float],
) -> dict[str, Sequence[Cell]]:
    """Return the additional cells of documents, or of seeds, from a ledger's judgements.

    name_of: returns the title of a match. words: the names of verdicts. chances: probabilities by seed and id; if one
    is missing, the judgement's own is used.
    """
    by_row: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        by_row.setdefault(judgement.seed if by_seed else judgement.id, []).append(judgement)
    cells: dict[str, Sequence[Cell]] = {}
    for id_, of_row in by_row.items():
        verdict = next(v for v in STRENGTH if any(j.verdict == v for j in of_row))
        strongest = [j for j in of_row if j.verdict == verdict]
        matches = _once(j.id if by_seed else j.seed for j in strongest) if verdict == "relevant" else []
        known = [p for j in strongest if (p := chances.get((j.seed, j.id), j.probability)) is not None]
        cells[id_] = _cells(
            words[verdict], [name_of(match) for match in matches], known, [j.reviewer for j in strongest],
            max(j.time for j in strongest), [j.note for j in strongest], matches,
        )  # fmt: skip
    return cells


def of_rows(decided: Iterable[Decided], words: Mapping[str, str]) -> dict[str, Sequence[Cell]]:
    """Return the additional cells of seeds in a review that matches rows; `words`: the names of row states."""
    by_row: dict[str, list[Decided]] = {}
    for one in decided:
        by_row.setdefault(one.row.seed.id, []).append(one)
    cells: dict[str, Sequence[Cell]] = {}
    for id_, of_row in by_row.items():
        known = [one.probability for one in of_row if one.probability is not None]
        titles = [one.title or one.text[:LINE] for one in of_row]
        cells[id_] = _cells(
            words[of_row[0].state], titles, known, [one.reviewer for one in of_row], max(one.time for one in of_row),
            [one.note for one in of_row], [one.match for one in of_row],
        )  # fmt: skip
    return cells


def _cells(
    verdict: str, titles: Iterable[str], chances: Sequence[float], reviewers: Iterable[str], time: str,
    notes: Iterable[str], matches: Iterable[str],
) -> list[Cell]:  # fmt: skip
    return [
        verdict,
        "; ".join(" ".join(title.split()) for title in titles if title) or None,
        round(max(chances), 4) if chances else None,
        ", ".join(_once(reviewers)) or None,
        time[:16].replace("T", " ") or None,
        "; ".join(_once(notes)) or None,
        "; ".join(_once(matches)) or None,
    ]


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))


def write_own(source: Path, columns: Columns, added: Added, out: Path) -> None:
    """Write the rows of `source` with the additional columns to `out`, .csv or .xlsx. Raises InputError."""
    write_cells(_rows(source, columns, added), out, source.stem[:31])


def write_cells(rows: Iterable[Sequence[Cell]], out: Path, title: str) -> None:
    """Write rows of cells to `out`, .csv or .xlsx with a sheet of this title. Raises InputError."""
    with replacing(out) as file:
        if out.suffix.lower() == ".xlsx":
            cells_to_xlsx(rows, file, title)
        elif out.suffix.lower() == ".csv":
            cells_to_csv(rows, file)
        else:
            raise InputError(f"cannot tell the format of {out}: its name must end in .csv or .xlsx")


def _rows(source: Path, columns: Columns, added: Added) -> Iterator[list[Cell]]:
    rows = originals(source, columns)
    header = [str(name or "") for name in next(rows, ((), ""))[0]]
    yield [*header, *(f"{name} (linker)" if name in header else name for name in added.names)]
    none = [None] * len(added.names)
    for cells, id_ in rows:
        yield [*cells, *[None] * (len(header) - len(cells)), *(added.cells.get(id_, none) if id_ else none)]
