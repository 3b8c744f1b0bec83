"""The quality of thresholds on a score, measured on judged pairs: pairs accepted, the share right, pairs missed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest

from linker.base.errors import InputError


@dataclass(frozen=True, slots=True)
class Threshold:
    """The pairs whose score is at most `score`: their number, how many of them match, and the resulting measures.

    `precision` has a 95 % Wilson interval; it is over the given pairs, so a threshold chosen on them looks slightly
    better than it is.
    """

    score: float
    accepted: int
    right: int
    precision: float
    interval: tuple[float, float]
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The table, from the lowest threshold up; `pairs` were judged, `matches` of which match."""

    pairs: int
    matches: int
    rows: tuple[Threshold, ...]

    @property
    def best(self) -> Threshold:
        """The threshold with the highest F1; if tied, the lowest."""
        return max(self.rows, key=lambda row: (row.f1, -row.score))

    def with_precision(self, least: float) -> Threshold | None:
        """Return the highest threshold at which at least this share of the accepted pairs match, or None."""
        return next((row for row in reversed(self.rows) if row.precision >= least), None)

    def text(self) -> str:
        """Return the table as text."""
        lines = [
            f"{self.pairs} pairs, {self.matches} of which match",
            "score ≤  accepted  right  precision (95 %)   recall     F1",
        ]
        for row in self.rows:
            low, high = row.interval
            mark = "  best F1" if row is self.best else ""
            lines.append(
                f"{row.score:7.2f}  {row.accepted:8}  {row.right:5}  {row.precision:.3f} ({low:.2f}–{high:.2f})  "
                f"{row.recall:6.3f}  {row.f1:5.3f}{mark}"
            )
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the table as JSON values."""
        rows = [asdict(row) for row in self.rows]
        return {"pairs": self.pairs, "matches": self.matches, "best": self.best.score, "rows": rows}


def thresholds(scores: npt.ArrayLike, matches: npt.ArrayLike, at: Sequence[float]) -> Thresholds:
    """Evaluate thresholds on scores [n] that fall with similarity; `matches`, bool [n], says which pairs match.

    Thresholds in `at` that accept no pair are left out. Raises InputError if no pair or every pair matches, or if
    nothing is accepted at all.
    """
    values, right = np.asarray(scores, np.float64), np.asarray(matches, bool)
    total = int(right.sum())
    if not 0 < total < len(right):
        raise InputError(
            f"{total} of {len(right)} pairs match: thresholds need pairs that match and pairs that do not"
        )
    rows = []
    for threshold in sorted(set(at)):
        accepted = values <= threshold
        count, hits = int(accepted.sum()), int((accepted & right).sum())
        if count:
            interval = binomtest(hits, count).proportion_ci(method="wilson")
            rows.append(
                Threshold(
                    threshold,
                    count,
                    hits,
                    hits / count,
                    (float(interval.low), float(interval.high)),
                    hits / total,
                    2 * hits / (count + total),
                )
            )
    if not rows:
        raise InputError(f"every score is above {max(at):g}: there is no threshold to judge")
    return Thresholds(len(right), total, tuple(rows))
