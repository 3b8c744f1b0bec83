"""Files of predicted news similarities, and their agreement with people: Pearson per language pair, Williams tests."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from indexes.dtypes import Float64Array
from linker.base.errors import InputError
from linker.base.files import nonempty_lines
from linker.base.printable import spreadsheet_cell
from linker.evaluation.correlation import pearson, williams_from_scores
from linker.papers.news.articles import SAME, UNRELATED, NewsPair, scores_of, targets
from linker.papers.news.sharing import Shared
from linker.papers.news.similarity import Predictions

SHARED = ("shared entities", "shared words")  # columns of text, for human readers
# the only column that decreases with similarity, from 4 (unrelated) to 1; all others increase
SCORE = "score"
MEANS = ("monolingual", "cross-language")
FEWEST = 4  # a language pair needs at least this many pairs for a correlation


@dataclass(frozen=True, slots=True)
class Correlations:
    """Pearson's correlation of systems with human scores, overall and per language pair, and Williams tests.

    `tests` holds (A, B, t, p, reason): p is the one-sided probability that A is ahead of B only by chance; it is NaN
    if there is a reason why it cannot be computed.
    """

    count: int
    kinds: dict[str, int]  # language pair → number of pairs
    overall: dict[str, float]  # system → r
    by_kind: dict[str, dict[str, float]]  # system → language pair → r
    means: dict[str, dict[str, float]]  # system → one of MEANS → mean r of its language pairs
    tests: tuple[tuple[str, str, float, float, str], ...]

    def text(self) -> str:
        """Return the figures as a text table."""
        width = max(map(len, self.overall))
        head = " ".join(f"{kind:>6}" for kind in ("all", *self.kinds))
        counts = " ".join(f"{n:>6}" for n in (self.count, *self.kinds.values()))
        rows = [f"{'pearson':<{width}} {head}", f"{'pairs':<{width}} {counts}"]
        for system, r in self.overall.items():
            values = (r, *(self.by_kind[system][kind] for kind in self.kinds))
            rows.append(f"{system:<{width}} " + " ".join(f"{value:6.3f}" for value in values))
        for name in MEANS if len(self.kinds) > 1 else ():
            rs = [f"{system} {self.means[system][name]:.3f}" for system in self.overall]
            rows.append(f"mean of {name} pairs: {', '.join(rs)}")
        for a, b, t, p, reason in self.tests:
            rows.append(f"{a} > {b}: " + (reason or f"t = {t:.2f}, p = {p:.4f} (Williams, one-sided)"))
        return "\n".join(rows) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        tests = [{"a": a, "b": b, "t": t, "p": p, "reason": why} for a, b, t, p, why in self.tests]
        return {"pairs": self.count, "kinds": self.kinds, "pearson": self.overall,
                "by_kind": self.by_kind, "means": self.means, "williams": tests}  # fmt: skip


def agree(
    pairs: Sequence[NewsPair], systems: Mapping[str, Float64Array], *, every: bool = False
) -> Correlations:
    """Compare the similarities [n] of systems with the scores of the pairs.

    Williams tests compare the first system with the others or, with `every`, all pairs of systems; the better system
    comes first in each test. Raises InputError if there is no system or a pair has no score.
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
    means = {name: {m: _mean(rs, m) for m in MEANS} for name, rs in by_kind.items()}
    contests = list(combinations(systems, 2))
    if not every:
        contests = contests[: len(systems) - 1]
    tests = []
    for one, other in contests:
        a, b = sorted((one, other), key=lambda name: -_or_lowest(overall[name]))
        result = williams_from_scores(gold, systems[a], systems[b])
        tests.append((a, b, result.statistic, result.p, result.reason))
    return Correlations(
        len(pairs), {kind: sum(mask) for kind, mask in kinds.items()}, overall, by_kind, means, tuple(tests)
    )


def predictions_text(
    pairs: Sequence[NewsPair], predictions: Predictions, explained: Sequence[Shared] = ()
) -> str:
    """Return one line per pair: id, score, features; the line of a pair without a prediction has only its id.

    `explained`, the shared content of each predicted pair's articles, adds two columns of text.
    """
    names = [SCORE, *predictions.columns, *(SHARED if explained else ())]
    values = [predictions.scores, *predictions.columns.values()]
    texts = [[spreadsheet_cell(s.entity_text), spreadsheet_cell(", ".join(s.words))] for s in explained]
    rows = {
        id_: "\t".join([*(f"{column[row]:.6f}" for column in values), *(texts[row] if texts else ())])
        for row, id_ in enumerate(predictions.ids)
    }
    empty = "\t" * (len(names) - 1)
    lines = [
        "\t".join(["id", *names]),
        *(f"{spreadsheet_cell(pair.id)}\t{rows.get(pair.id, empty)}" for pair in pairs),
    ]
    return "".join(f"{line}\n" for line in lines)


def read_predictions(path: Path, pairs: Sequence[NewsPair]) -> dict[str, Float64Array]:
    """Return each column of a file as similarities, float64 [n], in the order of the pairs. Raises InputError."""
    header, *lines = nonempty_lines(path) or [""]
    first, *names = header.split("\t")
    if first != "id" or SCORE not in names:
        raise InputError(f"{path}:1: expected a header: id, {SCORE} and features, separated by tabs")
    explained = tuple(names[-len(SHARED) :]) == SHARED
    names = names[: -len(SHARED)] if explained else names
    rows = {}
    for number, line in enumerate(lines, start=2):
        id_, *fields = line.split("\t")
        if explained:  # the line may have lost trailing empty text columns
            fields = fields[: len(names)]
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


def scores_in(path: Path, pairs: Sequence[NewsPair]) -> Float64Array:
    """Return a file's scores, float64 [n] from 1 (same story) to 4. Raises as `read_predictions` does."""
    return scores_of(read_predictions(path, pairs)[SCORE])


def systems_of(paths: Sequence[Path], pairs: Sequence[NewsPair]) -> dict[str, Float64Array]:
    """Return each file's scores, and the first file's varying features, by system, float64 [n]. Raises InputError."""
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


def _mean(by_kind: Mapping[str, float], which: str) -> float:
    """Return the mean r of monolingual or of cross-language pairs; NaN if none has enough pairs."""
    rs = [
        r
        for kind, r in by_kind.items()
        if kind and not math.isnan(r) and (len({*kind.split("-")}) == 1) == (which == "monolingual")
    ]
    return float(np.mean(rs)) if rs else math.nan


def _or_lowest(r: float) -> float:
    return -2.0 if math.isnan(r) else r
