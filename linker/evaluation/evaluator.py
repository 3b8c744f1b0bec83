"""Evaluate a run against judgements."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.dtypes import Float64Array
from linker.evaluation.formats.sources import QrelsLike, RunLike, load_qrels, load_run
from linker.evaluation.measures import summarise
from linker.evaluation.names import DEFAULT, Measure, parse
from linker.evaluation.order import Compat
from linker.evaluation.ranking import Ranking, TrecOptions, extreme, rank, restrict
from linker.evaluation.result import Evaluation, Interval
from linker.evaluation.significance import bootstrap


@dataclass(frozen=True, slots=True)
class Resampling:
    """The settings of a bootstrap: number of samples, confidence and seed."""

    samples: int = 1000
    confidence: float = 0.95
    seed: int = 0


def evaluate(
    qrels: QrelsLike,
    run: RunLike,
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
    """Evaluate a run against judgements; each is a path, a mapping, triples, or a pandas or polars data frame.

    A path names a file in TREC's format, JSON as ranx and pytrec_eval write it, JSON lines or Parquet, or stdin (`-`);
    for judgements, also a BEIR folder or `ir_datasets:ID`. A mapping maps topics to documents with their relevances or
    scores; in a run, also to the Hits of a search, or to a list of ids, best first. Triples are (topic, document,
    relevance or score), or objects such as ir_measures' Qrel and ScoredDoc. `complete`: average over all judged topics
    (trec_eval's -c), not only those answered. `level` (-l): the lowest relevance that counts as relevant.
    `judged_only` (-J), `most` (-M) and `compat` are those of `TrecOptions`. `ties`: also count tied documents and bound
    every measure over all orders of tied scores. `intervals`: also compute a bootstrap interval of each mean. Raises
    InputError if the input is malformed, a measure is unknown, or no topic of the run is judged.
    """
    requested = parse(measures)
    numeric = [m for m in requested if m.definition.summary != "name"]
    judgements, answers = load_qrels(qrels), load_run(run)
    whole = rank(judgements, answers, TrecOptions(level, judged_only, most, compat))
    ranking = restrict(whole)
    rankings = {m: whole if _is_of_whole(m, judged_only) else ranking for m in numeric}
    columns = {str(m): m.values(rankings[m]) for m in numeric}
    return Evaluation(
        measures=tuple(requested),
        means={str(m): summarise(m.definition, rankings[m], columns[str(m)], complete) for m in numeric},
        topics=judgements.topics,
        answered=ranking.answered,
        per_topic=columns,
        run_name=answers.name,
        complete=complete,
        ignored=len(answers) - int(np.count_nonzero(ranking.answered)),
        bounds=_bounds(whole, numeric, complete) if ties else {},
        tied=(int(whole.tied.sum()), int(np.count_nonzero(whole.tied))) if ties else None,
        intervals=_intervals(ranking, numeric, columns, complete, intervals) if intervals else {},
        undefined={
            str(m): int(np.isnan(columns[str(m)]).sum()) for m in numeric if m.definition.summary == "defined"
        },
    )


def _is_of_whole(measure: Measure, judged_only: bool) -> bool:
    """Return whether a measure needs the ranking before `restrict` is applied; -J excludes unjudged pool documents."""
    return measure.definition.is_area or (measure.definition.of_pool and not judged_only)


def _bounds(whole: Ranking, measures: Sequence[Measure], complete: bool) -> dict[str, Interval]:
    """Return the least and greatest value of each mean over all orders of tied scores, on which AUCs do not depend."""
    ends = [extreme(whole, best) for best in (False, True)]
    result = {}
    for m in measures:
        if m.definition.is_bounded:
            low, high = sorted(summarise(m.definition, r, m.values(r), complete) for r in ends)
            result[str(m)] = (low, high)
    return result


def _intervals(
    ranking: Ranking,
    measures: Sequence[Measure],
    columns: dict[str, Float64Array],
    complete: bool,
    how: Resampling,
) -> dict[str, Interval]:
    result = {}
    for m in measures:
        if not m.definition.is_resampled:
            continue
        column = columns[str(m)]
        if m.definition.is_area:
            column = column[~np.isnan(column)]
        elif not complete:
            column = column[ranking.answered]
        low, high = bootstrap(column, samples=how.samples, confidence=how.confidence, seed=how.seed)
        logarithms = m.definition.summary == "geometric"
        result[str(m)] = (math.exp(low), math.exp(high)) if logarithms else (low, high)
    return result
