"""From judgements and a run to an `Evaluation`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from linker.evaluation import metrics
from linker.evaluation.names import DEFAULT, parse
from linker.evaluation.order import Compat
from linker.evaluation.ranking import Options, rank
from linker.evaluation.result import Evaluation
from linker.evaluation.sources import as_qrels, as_run


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
) -> Evaluation:
    """Evaluate a run, each of the two given as a path, a nested mapping, or a pandas or polars frame.

    `complete`: average over all judged topics (trec_eval's -c), else over the answered ones. `level` (-l): the
    lowest relevant relevance. `judged_only` (-J), `most` (-M) and `compat` are those of `Options`.
    Raises InputError on malformed input, unknown measures, and a run none of whose topics is judged.
    """
    wanted = parse(measures)
    judgements, answers = as_qrels(qrels), as_run(run)
    ranking = rank(judgements, answers, Options(level, judged_only, most, compat))
    columns = {str(measure): metrics.values(ranking, measure) for measure in wanted}
    means = {str(m): metrics.mean(ranking, m, columns[str(m)], complete) for m in wanted}
    return Evaluation(
        measures=tuple(wanted),
        means=means,
        topic_ids=judgements.topic_ids,
        answered=ranking.answered,
        per_topic=columns,
        run_name=answers.name,
        complete=complete,
        ignored=len(answers) - int(np.count_nonzero(ranking.answered)),
    )
