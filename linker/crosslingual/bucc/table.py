"""The shared task's table: each run's measures by language, over all pages and over those that it answers."""

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
    """One run in one language: MRR, S@1, S@5 with complete averaging, and over the answered pages only."""

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
        """Return the printed form of the columns in `HEADER`."""
        numbers = (self.coverage, *self.complete, *self.answered)
        return (self.language, self.run, str(self.pages), *(f"{number:.3f}" for number in numbers))


def evaluate_runs(qrels: Sequence[Path], runs: Sequence[Path]) -> list[Row]:
    """Evaluate every run on every language that it has lines for; a language is the name of its qrels (fr.test.txt).

    Raises InputError when a run has lines for none.
    """
    gold = {path: read_qrels(path) for path in qrels}
    rows = []
    for path in runs:
        run = read_run(path)
        own = [_row(name, judged, run) for name, judged in gold.items() if not judged.keys().isdisjoint(run)]
        if not own:
            names = ", ".join(name.name for name in qrels)
            raise InputError(f"{path}: no line for any page of {names}; do the ids agree?")
        rows += own
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
    """Return the table with aligned columns, best run of a language first."""
    lines = [HEADER, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    return "".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    pairs = list(zip(cells, widths, strict=True))
    return "  ".join([*(c.ljust(w) for c, w in pairs[:2]), *(c.rjust(w) for c, w in pairs[2:])]) + "\n"
