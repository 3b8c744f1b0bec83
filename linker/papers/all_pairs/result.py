"""The result of a pair evaluation and its printed form."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from linker.evaluation import tables

# The paper's means are reproduced only if 3300 is among the ranks.
RANKS = (50, 100, 200, 500, 1000, 2000, 3000, 3300)


@dataclass(frozen=True, slots=True)
class Confusion:
    """Confusion matrix when pairs with a score ≥ `threshold` are accepted."""

    threshold: float
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def precision(self) -> float:
        """Share of the accepted pairs that are links; NaN if no pair is accepted."""
        accepted = self.true_positives + self.false_positives
        return self.true_positives / accepted if accepted else math.nan

    @property
    def recall(self) -> float:
        """Share of the links that are accepted."""
        return self.true_positives / (self.true_positives + self.false_negatives)


@dataclass(frozen=True, slots=True)
class ReadingEffort:
    """How many pairs must be read in order of score to find `links` links.

    `pairs`: read from a single list of all pairs; None if there are fewer links. `mean_tweets` and `median_tweets`:
    read per article, over the `articles` that have that many links.
    """

    links: int
    pairs: int | None
    articles: int
    mean_tweets: float
    median_tweets: float


@dataclass(frozen=True)
class PairEvaluation:
    """The AST tables. `precision_at` (by rank) is the paper's "r-Precision", which is not TREC's R-precision.

    "Micro" figures pool all pairs; "macro" figures average over articles.
    """

    articles: int
    tweets: int
    links: int
    precision_at: dict[int, float]
    map_micro: float
    map_macro: float
    auc_micro: float
    auc_macro: float
    articles_without_link: int
    articles_without_negative: int
    thresholds: tuple[Confusion, ...] = ()
    until: tuple[ReadingEffort, ...] = ()

    @property
    def mrp(self) -> float:
        """Mean of `precision_at` over its ranks; NaN if a rank exceeds the number of pairs."""
        return sum(self.precision_at.values()) / len(self.precision_at)

    def text(self) -> str:
        """Return the tables for the terminal."""
        main = [["measure", "", "value"]]
        main += [[f"precision_at_{r}", "", f"{p:.4f}"] for r, p in self.precision_at.items()]
        main += [["mRP", "", f"{self.mrp:.4f}"]]
        for name in ("map_micro", "map_macro", "auc_micro", "auc_macro"):
            main.append([name, "", f"{getattr(self, name):.4f}"])
        for name in ("articles", "tweets", "links", "articles_without_link", "articles_without_negative"):
            main.append([name, "", str(getattr(self, name))])
        parts = [tables.plain([[a, c] for a, _, c in main])]
        if self.thresholds:
            parts.append(tables.plain(_threshold_cells(self.thresholds)))
        if self.until:
            parts.append(tables.plain(_reading_cells(self.until)))
        return "\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold; NaN becomes None."""
        data = asdict(self) | {"mrp": self.mrp}
        data["thresholds"] = [
            asdict(t) | {"precision": t.precision, "recall": t.recall} for t in self.thresholds
        ]
        plain: dict[str, Any] = _without_nan(data)
        return plain


def _threshold_cells(rows: tuple[Confusion, ...]) -> list[list[str]]:
    head = [
        "score ≥",
        "true positives",
        "false positives",
        "false negatives",
        "true negatives",
        "precision",
        "recall",
    ]
    return [head] + [
        [f"{t.threshold:g}", *map(str, (t.true_positives, t.false_positives, t.false_negatives, t.true_negatives)),
         f"{t.precision:.4f}", f"{t.recall:.4f}"]
        for t in rows
    ]  # fmt: skip


def _reading_cells(rows: tuple[ReadingEffort, ...]) -> list[list[str]]:
    head = ["until links", "pairs read", "articles", "mean tweets read", "median tweets read"]
    return [head] + [
        [str(r.links), "–" if r.pairs is None else str(r.pairs), str(r.articles),
         f"{r.mean_tweets:.1f}", f"{r.median_tweets:.1f}"]
        for r in rows
    ]  # fmt: skip


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _without_nan(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value
