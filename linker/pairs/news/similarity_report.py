"""Predictions of news similarity as files; their agreement with people: Pearson by language pair, Williams tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from indexes.dtypes import Float64Array
from linker.errors import InputError
from linker.evaluation.correlation import pearson, williams_from_scores
from linker.files import read_lines
from linker.pairs.news.articles import SAME, UNRELATED, NewsPair, targets
from linker.pairs.news.similarity import Predictions
from linker.printable import spreadsheet_cell

SCORE = "score"  # the column that counts down from 4 (unrelated) to 1; all others count up
FEWEST = 4  # pairs of a language pair below which no correlation is shown


@dataclass(frozen=True, slots=True)
class Agreement:
    """Pearson of systems with people: overall, by language pair, and Williams tests between systems.

    `tests` holds (A, B, t, p, reason): p that A is ahead of B by chance, one-sided; NaN with a reason.
    """

    count: int
    kinds: dict[str, int]  # language pair → pairs
    overall: dict[str, float]  # system → r
    by_kind: dict[str, dict[str, float]]  # system → language pair → r
    tests: tuple[tuple[str, str, float, float, str], ...]

    def text(self) -> str:
        """Lay the figures out for reading."""
        width = max(map(len, self.overall))
        head = " ".join(f"{kind:>6}" for kind in ("all", *self.kinds))
        counts = " ".join(f"{n:>6}" for n in (self.count, *self.kinds.values()))
        rows = [f"{'pearson':<{width}} {head}", f"{'pairs':<{width}} {counts}"]
        for system, r in self.overall.items():
            values = (r, *(self.by_kind[system][kind] for kind in self.kinds))
            rows.append(f"{system:<{width}} " + " ".join(f"{value:6.3f}" for value in values))
        for a, b, t, p, reason in self.tests:
            rows.append(f"{a} > {b}: " + (reason or f"t = {t:.2f}, p = {p:.4f} (Williams, one-sided)"))
        return "\n".join(rows) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        tests = [{"a": a, "b": b, "t": t, "p": p, "reason": why} for a, b, t, p, why in self.tests]
        return {"pairs": self.count, "kinds": self.kinds, "pearson": self.overall,
                "by_kind": self.by_kind, "williams": tests}  # fmt: skip


def agree(
    pairs: Sequence[NewsPair], systems: Mapping[str, Float64Array], *, every: bool = False
) -> Agreement:
    """Compare systems' similarities [n] with the pairs' scores; test the first against the others, or `every` two.

    Of two systems, the better comes first in a test. Raises InputError where there is no system.
    """
    if not systems:
        raise InputError("there is nothing to compare with the scores: name a file of predictions")
    gold = targets(pairs)
    kinds = {kind: [pair.kind == kind for pair in pairs] for kind in sorted({pair.kind for pair in pairs})}
    overall = {name: pearson(values, gold) for name, values in systems.items()}
    by_kind = {
        name: {kind: _pearson_within(values, gold, np.array(mask)) for kind, mask in kinds.items()}
        for name, values in systems.items()
    }
    duels = list(combinations(systems, 2))
    if not every:
        duels = duels[: len(systems) - 1]
    tests = []
    for one, other in duels:
        a, b = sorted((one, other), key=lambda name: -_or_lowest(overall[name]))
        result = williams_from_scores(gold, systems[a], systems[b])
        tests.append((a, b, result.statistic, result.p, result.reason))
    return Agreement(
        len(pairs), {kind: sum(mask) for kind, mask in kinds.items()}, overall, by_kind, tuple(tests)
    )


def predictions_text(pairs: Sequence[NewsPair], predictions: Predictions) -> str:
    """Lay out a line a pair: id, score, features; one that was left out keeps its line, with nothing after its id."""
    names = [SCORE, *predictions.columns]
    values = [predictions.scores, *predictions.columns.values()]
    rows = {
        id_: "\t".join(f"{column[row]:.6f}" for column in values) for row, id_ in enumerate(predictions.ids)
    }
    empty = "\t" * (len(names) - 1)
    lines = [
        "\t".join(["id", *names]),
        *(f"{spreadsheet_cell(pair.id)}\t{rows.get(pair.id, empty)}" for pair in pairs),
    ]
    return "".join(f"{line}\n" for line in lines)


def read_predictions(path: Path, pairs: Sequence[NewsPair]) -> dict[str, Float64Array]:
    """Return each column of a file as similarities [n] in the pairs' order.

    Raises InputError naming the line that cannot be read, or a pair that has no prediction.
    """
    header, *lines = read_lines(path) or [""]
    first, *names = header.split("\t")
    if first != "id" or SCORE not in names:
        raise InputError(f"{path}:1: expected a header: id, {SCORE} and features, separated by tabs")
    rows = {}
    for number, line in enumerate(lines, start=2):
        id_, *fields = line.split("\t")
        if any(field.strip() for field in fields):
            rows[id_] = _numbers(fields, len(names), f"{path}:{number}")
    cells = [pair.id if pair.id in rows else spreadsheet_cell(pair.id) for pair in pairs]
    missing = [pair.id for pair, cell in zip(pairs, cells, strict=True) if cell not in rows]
    if missing:
        raise InputError(
            f"{path} has no prediction for the pair {missing[0]!r} (and {len(missing) - 1} others): "
            "predict these pairs, or evaluate on those that have one"
        )
    table = np.array([rows[cell] for cell in cells], np.float64)
    columns = dict(zip(names, table.T, strict=True))
    columns[SCORE] = (UNRELATED - columns[SCORE]) / (UNRELATED - SAME)
    return columns


def systems_of(paths: Sequence[Path], pairs: Sequence[NewsPair]) -> dict[str, Float64Array]:
    """Return what to compare: each file's score under its name, then the first file's features, if they vary."""
    read = {path: read_predictions(path, pairs) for path in paths}
    names = [path.stem for path in paths]
    titles = names if len(set(names)) == len(names) else [str(path) for path in paths]
    systems = {title: read[path][SCORE] for title, path in zip(titles, paths, strict=True)}
    features = {name: v for name, v in read[paths[0]].items() if name != SCORE and not name.startswith("is ")}
    return systems | {name: values for name, values in features.items() if np.ptp(values) > 0}


def _numbers(fields: Sequence[str], count: int, where: str) -> list[float]:
    try:
        values = [float(field) for field in fields]
    except ValueError as e:
        raise InputError(f"{where}: {e}") from None
    if len(values) != count or not all(map(math.isfinite, values)):
        raise InputError(f"{where}: expected {count} numbers after the id, got {', '.join(fields) or 'none'}")
    return values


def _pearson_within(values: Float64Array, gold: Float64Array, mask: Any) -> float:
    return pearson(values[mask], gold[mask]) if mask.sum() >= FEWEST else math.nan


def _or_lowest(r: float) -> float:
    return -2.0 if math.isnan(r) else r
