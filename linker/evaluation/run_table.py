"""Several runs in one table: means by measure; the best and significant differences from the first run are marked."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linker.base.errors import InputError
from linker.evaluation import tables
from linker.evaluation.evaluator import Resampling, evaluate
from linker.evaluation.formats import QrelsLike, RunLike, load_qrels, load_run
from linker.evaluation.names import Measure
from linker.evaluation.order import Compat
from linker.evaluation.result import Evaluation
from linker.evaluation.significance import holm, randomisation

DEFAULT = ("map", "recip_rank", "ndcg_cut.10", "recall.100")
LEVELS = ((0.01, "‡"), (0.05, "†"))
COMMANDS = {"†": "$^{\\dagger}$", "‡": "$^{\\ddagger}$"}


@dataclass(frozen=True)
class RunTable:
    """Evaluations by the runs' labels, the first of which is the baseline, and p-values by (label, measure).

    `p`: two-sided, by Fisher's randomisation test against the baseline, Holm-adjusted over the whole table; only for
    measures with a value per topic.
    """

    evaluations: Mapping[str, Evaluation]
    p: Mapping[tuple[str, str], float]
    resampling: Resampling

    @property
    def measures(self) -> list[Measure]:
        """The measures that have a numeric value, in trec_eval's order."""
        return [m for m in next(iter(self.evaluations.values())).measures if m.definition.summary != "name"]

    def text(self) -> str:
        """Return the table for the terminal."""
        return tables.plain(self._cells())

    def markdown(self) -> str:
        """Return the table in Markdown, the best value of each measure in bold."""
        return tables.markdown(self._cells(), bold=self._best())

    def latex(self) -> str:
        """Return a LaTeX tabular, the best value of each measure in bold; it needs the package booktabs."""
        return tables.latex(self._cells(), bold=self._best(), symbols=COMMANDS, names=1)

    def _repr_html_(self) -> str:
        return tables.html(self._cells())

    def to_dict(self, *, per_topic: bool = False) -> dict[str, Any]:
        """Return a JSON-serialisable dictionary; NaN becomes None."""
        runs = [
            {"label": label, **e.to_dict(per_topic=per_topic)}
            | (
                {"p_holm": {n: self.p[label, n] for n in map(str, self.measures) if (label, n) in self.p}}
                if at
                else {}
            )
            for at, (label, e) in enumerate(self.evaluations.items())
        ]
        how = {"test": "randomisation", "samples": self.resampling.samples, "seed": self.resampling.seed}
        return {"baseline": next(iter(self.evaluations)), **how, "runs": runs}

    def remarks(self) -> list[str]:
        """Return lines on the meaning of the marks and on each run's coverage."""
        baseline = next(iter(self.evaluations))
        lines = [f"{label}: {e.coverage()}" for label, e in self.evaluations.items()]
        if not self.p:
            return lines
        marks = ", ".join(f"{mark} p < {level}" for level, mark in reversed(LEVELS))
        test = f"Fisher randomisation, two-sided, {self.resampling.samples:,} samples, Holm over the table"
        return [f"{marks} against {baseline} ({test})", *lines]

    def _cells(self) -> list[list[str]]:
        head = ["run", *(m.title for m in self.measures)]
        return [
            head,
            *([label, *(self._cell(label, m) for m in self.measures)] for label in self.evaluations),
        ]

    def _cell(self, label: str, measure: Measure) -> str:
        value, p = self.evaluations[label].means[str(measure)], self.p.get((label, str(measure)), 1.0)
        mark = next((mark for level, mark in LEVELS if p < level), "")
        return (f"{value:.0f}" if measure.definition.summary == "count" else f"{value:.4f}") + mark

    def _best(self) -> set[tuple[int, int]]:
        """Return the cells (row, column) with the best value of each measure; higher is better."""
        best = set[tuple[int, int]]()
        for column, m in enumerate(self.measures, start=1):
            if m.definition.summary == "count" or m.base == "unj" or len(self.evaluations) < 2:
                continue
            shown = [round(e.means[str(m)], 4) for e in self.evaluations.values()]
            best |= {
                (row, column) for row, v in enumerate(shown, start=1) if v == np.nanmax([*shown, -np.inf])
            }
        return best


def tabulate(
    qrels: QrelsLike,
    runs: Sequence[RunLike],
    measures: Iterable[str] | str = DEFAULT,
    *,
    complete: bool = True,
    level: int = 1,
    judged_only: bool = False,
    most: int | None = None,
    compat: Compat = "trec_eval-9",
    resampling: Resampling | None = None,
) -> RunTable:
    """Evaluate runs and test each against the first; arguments are as for `evaluate` and `compare`.

    Without `complete`, a test uses the topics that both runs answer. Raises InputError as `evaluate` does, and if
    there is no run or one is given twice.
    """
    if not runs:
        raise InputError("there is no run: give one or more")
    how, judgements = resampling or Resampling(10_000), load_qrels(qrels)
    options: dict[str, Any] = {
        "complete": complete, "level": level, "judged_only": judged_only, "most": most, "compat": compat,
    }  # fmt: skip
    results = [evaluate(judgements, load_run(run), measures, **options) for run in runs]
    evaluations = dict(zip(labels_of(runs, results), results, strict=True))
    return RunTable(evaluations, _adjusted(evaluations, complete, how), how)


def _adjusted(
    evaluations: Mapping[str, Evaluation], complete: bool, how: Resampling
) -> dict[tuple[str, str], float]:
    first = next(iter(evaluations.values()))
    paired = [str(m) for m in first.measures if m.definition.is_paired and m.definition.summary == "mean"]
    p = {}
    for label, other in list(evaluations.items())[1:]:
        topics = np.ones(len(first.topics), np.bool_) if complete else first.answered & other.answered
        for name in paired if topics.any() else ():
            values, base = other.per_topic[name][topics], first.per_topic[name][topics]
            p[label, name] = randomisation(values, base, samples=how.samples, seed=how.seed)
    return dict(zip(p, holm(list(p.values())), strict=True))


def labels_of(runs: Sequence[Any], results: Sequence[Evaluation]) -> list[str]:
    """Label runs by name (sixth column) or, if names repeat, by path or number. Raises InputError if a run repeats."""
    names = [e.run_name for e in results]
    if len(set(names)) == len(names):
        return names
    labels = [str(r) if isinstance(r, (str, os.PathLike)) else f"run {i}" for i, r in enumerate(runs, 1)]
    if len(set(labels)) < len(labels):
        raise InputError("the same run is given twice: name each run once")
    return labels
