"""From judgements and a run to an `Evaluation`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linker.evaluation import metrics
from linker.evaluation.fields import Floats
from linker.evaluation.names import COUNTS, DEFAULT, Measure, parse
from linker.evaluation.order import Compat
from linker.evaluation.ranking import Options, Ranking, extreme, rank, restrict
from linker.evaluation.result import Evaluation, Interval
from linker.evaluation.significance import bootstrap
from linker.evaluation.sources import as_qrels, as_run


@dataclass(frozen=True, slots=True)
class Resampling:
    """A bootstrap: how many samples, which confidence, which seed."""

    samples: int = 1000
    confidence: float = 0.95
    seed: int = 0


def evaluate(
    qrels: Any,
    run: Any,
    measures: Iterable[str] | str = DEFAULT,
    *,
    complete: bool = True,
    level: int = 1,
    judged_only: bool = False,
    most: int | None = None,
    compat: Compat = "trec_eval-9",
    ties: bool = False,
    intervals: Resampling | None = None,
) -> Evaluation:
    """Evaluate a run, each of the two given as a path, a nested mapping, or a pandas or polars frame.

    `complete`: average over all judged topics (trec_eval's -c), else over the answered ones. `level` (-l): the
    lowest relevant relevance. `judged_only` (-J), `most` (-M) and `compat` are those of `Options`.
    `ties`: also count tied documents and bound every measure over all orders of tied scores. `intervals`: also
    bootstrap an interval of each mean.
    Raises InputError on malformed input, unknown measures, and a run none of whose topics is judged.
    """
    wanted = parse(measures)
    numeric = [m for m in wanted if m.base != "runid"]
    judgements, answers = as_qrels(qrels), as_run(run)
    whole = rank(judgements, answers, Options(level, judged_only, most, compat))
    ranking = restrict(whole)
    seen = {m: whole if m.base.startswith("auc") else ranking for m in numeric}
    columns = {str(m): metrics.values(seen[m], m) for m in numeric}
    return Evaluation(
        measures=tuple(wanted),
        means={str(m): metrics.mean(seen[m], m, columns[str(m)], complete) for m in numeric},
        topics=judgements.topics,
        answered=ranking.answered,
        per_topic=columns,
        run_name=answers.name,
        complete=complete,
        ignored=len(answers) - int(np.count_nonzero(ranking.answered)),
        bounds=_bounds(whole, numeric, complete) if ties else {},
        tied=(int(whole.tied.sum()), int(np.count_nonzero(whole.tied))) if ties else None,
        intervals=_intervals(ranking, numeric, columns, complete, intervals) if intervals else {},
        undefined={m: int(np.isnan(columns[m]).sum()) for m in ("auc", "auc_judged") if m in columns},
    )


def _bounds(whole: Ranking, measures: Sequence[Measure], complete: bool) -> dict[str, Interval]:
    """Each mean's least and greatest value over all orders of tied scores; an AUC does not depend on them."""
    ends = [extreme(whole, best) for best in (False, True)]
    result = {}
    for m in measures:
        if m.base not in COUNTS and not m.base.startswith("auc"):
            low, high = sorted(metrics.mean(r, m, metrics.values(r, m), complete) for r in ends)
            result[str(m)] = (low, high)
    return result


def _intervals(
    ranking: Ranking, measures: Sequence[Measure], columns: dict[str, Floats], complete: bool, how: Resampling
) -> dict[str, Interval]:
    result = {}
    for m in measures:
        if m.base in COUNTS or m.base.endswith("_micro"):
            continue
        column = columns[str(m)]
        used = column[~np.isnan(column)] if m.base.startswith("auc") else column
        if not complete and not m.base.startswith("auc"):
            used = column[ranking.answered]
        low, high = bootstrap(used, samples=how.samples, confidence=how.confidence, seed=how.seed)
        result[str(m)] = (math.exp(low), math.exp(high)) if m.base == "gm_map" else (low, high)
    return result
