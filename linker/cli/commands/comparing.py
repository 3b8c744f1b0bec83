"""`compare`: runs compared with a baseline, with intervals and tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linker.evaluation.comparison import DEFAULT, Comparison, Test
from linker.evaluation.comparison import compare as compared
from linker.evaluation.evaluator import Resampling
from linker.evaluation.formats import QrelsLike, RunLike
from linker.evaluation.order import Compat


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
    otherwise only topics that all runs answer are compared. The result has `text()`, `markdown()`, `latex()` and
    `rows`. Raises InputError if `evaluate` does, for fewer than two runs, and for a run given twice.
    """
    return compared(
        qrels, runs, measures, baseline=baseline, test=test, complete=complete, level=level, compat=compat,
        resampling=Resampling(samples, seed=seed),
    )  # fmt: skip
