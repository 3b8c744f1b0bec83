"""One record per measure: its name, cutoffs and function, and how the topics' values are aggregated.

Parsing, aggregation, printing, resampling and bounds follow from these records; a new measure is one more record.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from indexes.dtypes import Float64Array
from linker.evaluation import metrics, roc
from linker.evaluation.ranking import Ranking

# How the topics' values are aggregated. "count": their sum. "geometric": exp of the mean of their logarithms.
# "defined": the mean over the topics whose value is not NaN. "pooled": computed from the documents of all topics in
# one list. "name": not a number but the run's name.
Summary = Literal["mean", "count", "geometric", "defined", "pooled", "name"]
RANKS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
RECALLS = tuple(tenth / 10 for tenth in range(11))
POOLED = {"auc_micro": roc.auc_micro, "auc_judged_micro": roc.auc_judged_micro}


@dataclass(frozen=True, slots=True)
class Definition:
    """A measure. `function` takes a Ranking (and a cutoff, if there are `cutoffs`) and returns float64 [topics].

    `cutoffs`: the cutoffs implied by the bare name; None if the measure takes none. `with_cutoff`: the measure
    that this one becomes when a cutoff is given. `aliases`: other spellings, in lower case. `by_topic`: whether it is
    printed per topic. `unit`: what its cutoffs are; "persistence" is RBP's p. `of_pool`: whether it uses the unjudged
    documents of the pool, which have a negative relevance.
    """

    name: str
    function: Callable[..., Float64Array]
    cutoffs: tuple[float, ...] | None = None
    summary: Summary = "mean"
    aliases: tuple[str, ...] = ()
    with_cutoff: str = ""
    by_topic: bool = True
    unit: Literal["rank", "recall", "persistence"] = "rank"
    of_pool: bool = False

    @property
    def is_area(self) -> bool:
        """Whether it is an area under a curve: it needs whole rankings, ignores the order of ties, and may be NaN."""
        return self.summary in {"defined", "pooled"}

    @property
    def is_bounded(self) -> bool:
        """Whether the order of tied scores can change the measure."""
        return self.summary in {"mean", "geometric"} and not self.of_pool

    @property
    def is_resampled(self) -> bool:
        """Whether resampling the topics gives an interval for the measure."""
        return self.summary in {"mean", "geometric", "defined"}

    @property
    def is_paired(self) -> bool:
        """Whether two runs can be compared on the measure topic by topic."""
        return self.summary == "mean" or (self.summary == "count" and self.name != "num_q")


def _no_value(*_: Any) -> Float64Array:
    raise AssertionError("the run's name is one value, not one per topic")


# In the order of trec_eval's own table.
DEFINITIONS = (
    Definition("runid", _no_value, summary="name", by_topic=False),
    Definition("num_q", metrics.num_q, summary="count", aliases=("numq",), by_topic=False),
    Definition("num_ret", metrics.num_ret, summary="count", aliases=("numret",)),
    Definition("num_rel", metrics.num_rel, summary="count", aliases=("numrel",)),
    Definition("num_rel_ret", metrics.num_rel_ret, summary="count", aliases=("numrelret",)),
    Definition("map", metrics.average_precision, aliases=("ap",), with_cutoff="map_cut"),
    Definition(
        "gm_map", metrics.log_average_precision, summary="geometric", aliases=("gmap",), by_topic=False
    ),
    Definition("Rprec", metrics.r_precision, aliases=("r-precision", "r-prec")),
    Definition("bpref", metrics.bpref),
    Definition("recip_rank", metrics.reciprocal_rank, aliases=("mrr", "rr"), with_cutoff="recip_rank_cut"),
    Definition("iprec_at_recall", metrics.interpolated_precision, RECALLS, aliases=("iprec",), unit="recall"),
    Definition("P", metrics.precision, RANKS, aliases=("precision",)),
    Definition("recall", metrics.recall, RANKS, aliases=("r",)),
    Definition("11pt_avg", metrics.eleven_point_average),
    Definition("ndcg", metrics.ndcg, with_cutoff="ndcg_cut"),
    Definition("ndcg_cut", metrics.ndcg, RANKS),
    Definition("map_cut", metrics.average_precision, RANKS),
    Definition("success", metrics.success, (1, 5, 10), aliases=("hit", "hits", "s")),
    Definition("set_P", metrics.set_precision, aliases=("setp",)),
    Definition("set_recall", metrics.set_recall, aliases=("setr",)),
    Definition("set_F", metrics.set_f, aliases=("setf", "f1")),
    Definition("unj", metrics.unjudged, (5, 10, 20), aliases=("unjudged",)),
    Definition("recip_rank_cut", metrics.reciprocal_rank, (10,)),
    Definition("auc", roc.auc, summary="defined", aliases=("auc-roc", "roc_auc")),
    Definition("auc_micro", roc.no_topic_value, summary="pooled", by_topic=False),
    Definition("auc_judged", roc.auc_judged, summary="defined"),
    Definition("auc_judged_micro", roc.no_topic_value, summary="pooled", by_topic=False),
    Definition("infAP", metrics.inferred_average_precision, of_pool=True),
    Definition("judged", metrics.judged, (5, 10, 20), of_pool=True),
    Definition("rbp", metrics.rank_biased_precision, (0.8,), unit="persistence"),
    Definition("err", metrics.expected_reciprocal_rank, (20,)),
)
BY_NAME = {definition.name: definition for definition in DEFINITIONS}


def summarise(definition: Definition, ranking: Ranking, per_topic: Float64Array, complete: bool) -> float:
    """Return trec_eval's summary of a measure from its values `per_topic`, float64 [topics].

    `complete` (-c): average over all judged topics, not only over the answered ones.
    """
    if definition.summary == "pooled":
        return POOLED[definition.name](ranking)
    if definition.summary == "defined":
        return roc.mean_of_defined(per_topic)
    answered = int(np.count_nonzero(ranking.answered))
    topics = len(ranking.topics) if complete else answered
    if definition.name == "num_q":
        return float(topics)
    if definition.name == "num_rel" and complete:
        return float(per_topic.sum())
    total = metrics.add_up(per_topic[ranking.answered])
    if definition.summary == "count":
        return total
    if definition.summary == "geometric":
        return math.exp((total + (topics - answered) * math.log(metrics.FLOOR)) / topics)
    return total / topics
