"""The shared task's table: measures per run and language, over all pages and over the answered ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from linker.errors import InputError
from linker.evaluation import Entries, evaluate, read_qrels, read_run

MEASURES = ("recip_rank", "success_1", "success_5")
HEADER = ("lang", "run", "pages", "coverage", "MRR", "S@1", "S@5", "MRR ans.", "S@1 ans.", "S@5 ans.")


@dataclass(frozen=True, slots=True)
class Row:
    """A run in one language: `MEASURES` over all pages (`complete`) and over the answered ones (`answered`)."""

    language: str
    run: str
    pages: int
    coverage: float
    complete: tuple[float, ...]
    answered: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = asdict(self)
        return values | {
            name: dict(zip(MEASURES, values[name], strict=True)) for name in ("complete", "answered")
        }

    def cells(self) -> tuple[str, ...]:
        """Return the row's text in each column of `HEADER`."""
        numbers = (self.coverage, *self.complete, *self.answered)
        return (self.language, self.run, str(self.pages), *(f"{number:.3f}" for number in numbers))


def evaluate_runs(qrels: Sequence[Path], runs: Sequence[Path]) -> list[Row]:
    """Evaluate every run on all qrels that it has lines for; qrels named fr.test.txt are for the language "fr".

    Raises InputError where a run has no line for any of them.
    """
    gold = {path: read_qrels(path) for path in qrels}
    rows = []
    for path in runs:
        run = read_run(path)
        matching = [
            _row(name, judged, run) for name, judged in gold.items() if not judged.keys().isdisjoint(run)
        ]
        if not matching:
            names = ", ".join(file.name for file in qrels)
            raise InputError(f"{path}: no line for any page of {names}; do the ids agree?")
        rows += matching
    return sorted(rows, key=lambda row: (row.language, -row.complete[0], row.run))


def _row(path: Path, qrels: Entries[int], run: Entries[float]) -> Row:
    complete, answered = (evaluate(qrels, run, MEASURES, complete=whole) for whole in (True, False))
    return Row(
        path.name.partition(".")[0],
        complete.run_name,
        complete.num_topics,
        complete.num_answered / complete.num_topics,
        tuple(complete[name] for name in MEASURES),
        tuple(answered[name] for name in MEASURES),
    )


def to_text(rows: Sequence[Row]) -> str:
    """Return the table with aligned columns."""
    lines = [HEADER, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    return "".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    pairs = list(zip(cells, widths, strict=True))
    return "  ".join([*(c.ljust(w) for c, w in pairs[:2]), *(c.rjust(w) for c, w in pairs[2:])]) + "\n"
