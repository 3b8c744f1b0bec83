"""Compare runs with a baseline: differences, intervals, Holm-adjusted p-values, wins, ties and losses."""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from indexes.dtypes import Float64Array
from linker.base.errors import InputError
from linker.base.terminal import quantity
from linker.evaluation import tables
from linker.evaluation.evaluator import Resampling, evaluate
from linker.evaluation.formats import QrelsLike, RunLike, load_qrels
from linker.evaluation.order import Compat
from linker.evaluation.result import Evaluation
from linker.evaluation.run_table import labels_of
from linker.evaluation.significance import bootstrap, holm, paired_t, randomisation

Test = Literal["randomisation", "t"]
DEFAULT = ("map", "recip_rank", "success.1,5")


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One run under one measure; everything after `mean` is None for the baseline itself.

    `low`, `high`: bootstrap interval of the mean difference; `p`: two-sided p-value; `p_holm`: adjusted over all rows;
    `wins`, `ties`, `losses`: number of topics on which the run is above, equal to or below the baseline.
    """

    run: str
    measure: str
    mean: float
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None


@dataclass(frozen=True)
class Comparison:
    """The rows of a comparison, the evaluations behind them by run label, and the differences per topic.

    `differences`: (run, measure) → float64 [t], the run minus the baseline on the `num_topics` compared topics.
    """

    rows: tuple[ComparisonRow, ...]
    evaluations: dict[str, Evaluation]
    baseline: str
    test: Test
    resampling: Resampling
    num_topics: int
    differences: dict[tuple[str, str], Float64Array] = field(repr=False)

    def text(self) -> str:
        """Return the table for the terminal."""
        return tables.plain(self._cells())

    def markdown(self) -> str:
        """Return the table in Markdown."""
        return tables.markdown(self._cells())

    def latex(self) -> str:
        """Return the table as a LaTeX tabular; it needs the package booktabs."""
        return tables.latex(self._cells())

    def _repr_html_(self) -> str:
        return tables.html(self._cells())

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable dictionary; NaN becomes None."""
        return {
            "baseline": self.baseline,
            "test": self.test,
            "samples": self.resampling.samples,
            "confidence": self.resampling.confidence,
            "seed": self.resampling.seed,
            "topics": self.num_topics,
            "answered": {label: e.num_answered for label, e in self.evaluations.items()},
            "rows": [_plain(row) for row in self.rows],
        }

    def remarks(self) -> list[str]:
        """Return lines that say what the table is based on: topics, baseline, test, each run's coverage."""
        test = "Fisher randomisation" if self.test == "randomisation" else "paired t-test"
        topics = quantity(self.num_topics, "topic")
        lines = [f"{topics}; baseline {self.baseline}; {test}, two-sided, Holm over all rows"]
        return lines + [f"{label}: {e.coverage()}" for label, e in self.evaluations.items()]

    def _cells(self) -> list[list[str]]:
        head = ["run", "measure", "mean", "difference", "95% interval", "p", "p (Holm)", "wins/ties/losses"]
        return [head, *(_cells(row) for row in self.rows)]


def compare(
    qrels: QrelsLike,
    runs: Sequence[RunLike],
    measures: Iterable[str] | str = DEFAULT,
    *,
    baseline: RunLike | None = None,
    test: Test = "randomisation",
    complete: bool = True,
    level: int = 1,
    compat: Compat = "trec_eval-9",
    samples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare runs with `baseline`, by default the first of them: differences, 95 % intervals and p-values (Holm).

    `qrels` and `runs` are as for `evaluate`. With `complete`, a topic that a run does not answer counts as 0;
    otherwise only the topics that all runs answer are compared. The result has `text()`, `markdown()`, `latex()` and
    `rows`. Raises InputError as `evaluate` does, and for fewer than two runs, a run given twice, no topic answered by
    all runs, or a measure that cannot be compared topic by topic.
    """
    how = Resampling(samples, seed=seed)
    everything: list[RunLike] = list(runs)
    at = 0 if baseline is None else next((i for i, run in enumerate(runs) if _same(run, baseline)), -1)
    if at < 0 and baseline is not None:
        everything, at = [baseline, *runs], 0
    if len(everything) < 2:
        raise InputError("a comparison needs at least two runs: give another one, or `baseline`")
    judgements = load_qrels(qrels)
    results = [
        evaluate(judgements, r, measures, complete=complete, level=level, compat=compat) for r in everything
    ]
    labels = labels_of(everything, results)
    unpaired = [m.base for m in results[0].measures if not m.definition.is_paired]
    if unpaired:
        raise InputError(f"measure {unpaired[0]!r} cannot be compared topic by topic; choose another")
    base = labels[at]
    evaluations = dict(zip(labels, results, strict=True))
    topics = np.ones(len(judgements), np.bool_) if complete else np.all([e.answered for e in results], axis=0)
    if not topics.any():
        raise InputError("there is no topic that all runs answer: compare with `complete`")
    names = [str(m) for m in results[0].measures]
    columns = {(run, name): e.per_topic[name][topics] for run, e in evaluations.items() for name in names}
    order = [base, *(label for label in labels if label != base)]
    rows = [_row(run, name, columns, base, test, how) for name in names for run in order]
    return Comparison(
        rows=tuple(_adjusted(rows)),
        evaluations={label: evaluations[label] for label in order},
        baseline=base,
        test=test,
        resampling=how,
        num_topics=int(topics.sum()),
        differences={(r, n): columns[r, n] - columns[base, n] for n in names for r in order[1:]},
    )


def _row(
    run: str, name: str, columns: dict[tuple[str, str], Float64Array], base: str, test: Test, how: Resampling
) -> ComparisonRow:
    values, reference = columns[run, name], columns[base, name]
    if run == base:
        return ComparisonRow(run, name, float(values.mean()))
    difference = values - reference
    low, high = bootstrap(difference, samples=how.samples, confidence=how.confidence, seed=how.seed)
    fisher = test == "randomisation"
    p = (
        randomisation(values, reference, samples=how.samples, seed=how.seed)
        if fisher
        else paired_t(values, reference).p
    )
    signs = np.sign(difference)
    wins, ties, losses = (int(np.count_nonzero(signs == s)) for s in (1, 0, -1))
    return ComparisonRow(
        run, name, float(values.mean()), float(difference.mean()), low, high, p, None, wins, ties, losses
    )


def _adjusted(rows: list[ComparisonRow]) -> list[ComparisonRow]:
    adjusted = iter(holm([row.p for row in rows if row.p is not None]))
    return [
        row if row.p is None else ComparisonRow(**(asdict(row) | {"p_holm": next(adjusted)})) for row in rows
    ]


def _same(run: Any, baseline: Any) -> bool:
    paths = isinstance(run, (str, os.PathLike)) and isinstance(baseline, (str, os.PathLike))
    return os.fspath(run) == os.fspath(baseline) if paths else run is baseline


def _plain(row: ComparisonRow) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(row).items()}


def _cells(row: ComparisonRow) -> list[str]:
    if row.difference is None:
        return [row.run, row.measure, f"{row.mean:.4f}", "", "", "", "", ""]
    return [
        row.run,
        row.measure,
        f"{row.mean:.4f}",
        f"{row.difference:+.4f}",
        f"[{row.low:+.4f}, {row.high:+.4f}]",
        f"{row.p:.4f}",
        f"{row.p_holm:.4f}",
        f"{row.wins}/{row.ties}/{row.losses}",
    ]
