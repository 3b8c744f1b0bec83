"""The input of the measures: for every topic, the ranks of its judged documents."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from indexes.dtypes import BoolArray, FloatArray, Int64Array
from linker.base.errors import InputError
from linker.evaluation.order import COMPAT, Compat, break_ties, judged_rows, sort, ties
from linker.evaluation.reading.entries import Entries, sortable

_MOST = 1 << 31  # greater than any relevance


@dataclass(frozen=True)
class TrecOptions:
    """trec_eval's options. Raises InputError if `level` or `most` is below 1 or `compat` is unknown.

    `level` (-l): the lowest relevance that counts as relevant; `judged_only` (-J): leave out unjudged documents; `most`
    (-M): how many documents per topic are evaluated; `compat`: trec_eval 9 compares scores as float32, 10 as doubles.
    """

    level: int = 1
    judged_only: bool = False
    most: int | None = None
    compat: Compat = "trec_eval-9"

    def __post_init__(self) -> None:
        if self.level < 1:
            raise InputError(f"relevance level {self.level}: it must be at least 1")
        if self.most is not None and self.most < 1:
            raise InputError(f"`most` is {self.most} documents per topic: it must be at least 1")
        if self.compat not in COMPAT:
            raise InputError(f"compat {self.compat!r}: choose one of {', '.join(COMPAT)}")


@dataclass(frozen=True)
class Ranking:
    """The ranks (from 1) of the judged documents that were retrieved, and counts per topic.

    Some arrays have one element per judged topic [t], in byte order of the ids. `topics`: the ids; `answered`: whether
    the run has the topic; `num_ret`, `num_rel`, `num_nonrel`: how many documents are retrieved, judged relevant, and
    judged below the level; `tied`: how many retrieved documents share their score with another. Others have one element
    per retrieved judged document [m], grouped by topic and sorted by rank. `topic`: the position of its topic; `rank`;
    `rel`: its relevance, negative for "not judged"; `first`, `last`: bounds of its rank over all orders of tied scores;
    `score`. `pool`: the scores of all retrieved documents of judged topics. Integers are int64.
    """

    topics: npt.NDArray[np.bytes_]
    answered: BoolArray
    num_ret: Int64Array
    num_rel: Int64Array
    num_nonrel: Int64Array
    topic: Int64Array
    rank: Int64Array
    rel: Int64Array
    first: Int64Array
    last: Int64Array
    score: FloatArray
    pool: FloatArray
    qrels: Entries[int]
    tied: Int64Array
    options: TrecOptions

    @property
    def relevant(self) -> BoolArray:
        """Which retrieved judged documents are relevant, [m]."""
        return self.rel >= self.options.level

    @cached_property
    def ideal(self) -> tuple[Int64Array, Int64Array]:
        """Topic and value of every positive relevance in the judgements, int64 [g] each, descending per topic."""
        gains = self.qrels.numbers > 0
        topic, gain = self.qrels.topic[gains], self.qrels.numbers[gains].astype(np.int64)
        key = np.sort(topic << 32 | _MOST - gain)
        return key >> 32, _MOST - (key & (1 << 32) - 1)

    def count(self, rows: BoolArray) -> Int64Array:
        """Return the number of marked rows per topic, int64 [t]; `rows`: flags [m]."""
        return np.bincount(self.topic[rows], minlength=len(self.topics))


def rank(qrels: Entries[int], run: Entries[float], options: TrecOptions) -> Ranking:
    """Rank a run's judged documents as trec_eval does, by score, then id, both descending.

    `restrict` then applies -M and -J and drops negative judgements. Raises InputError if no topic of the run is
    judged.
    """
    topic_of = _positions(run.topics, qrels.topics)
    if (topic_of < 0).all():
        raise InputError(
            f"{run.source.name}: none of its topics ({len(run):,}, first: {run.topic_ids[0]!r}) is in "
            f"{qrels.source.name} (first: {qrels.topic_ids[0]!r}); do the two belong together?"
        )
    ordered = sort(run, topic_of, options.compat)
    judged, judgement = judged_rows(qrels, run, ordered)
    first, last, tied = ties(ordered, judged, len(qrels))
    position = break_ties(run.documents, ordered, judged, first, last)
    topic, rel = ordered.topic[judged], qrels.numbers[judgement].astype(np.int64)
    base = ordered.begin[topic] - 1
    order: Int64Array | slice = np.argsort(position) if (last > first).any() else slice(None)
    return replace(
        _counts(qrels, run, topic_of, options, tied),
        topic=topic[order],
        rank=(position - base)[order],
        rel=rel[order],
        first=(first - base)[order],
        last=(last - base)[order],
        score=ordered.score[judged][order],
        pool=ordered.score,
    )


_ROWS = ("topic", "rank", "rel", "first", "last", "score")


def restrict(ranking: Ranking) -> Ranking:
    """Return the ranking without ranks beyond -M or negative judgements; with -J, rank only the judged documents."""
    options = ranking.options
    most = options.most or np.iinfo(np.int64).max
    keep = (ranking.rel >= 0) & (ranking.rank <= most)
    columns = {name: getattr(ranking, name)[keep] for name in _ROWS}
    result = replace(ranking, num_ret=np.minimum(ranking.num_ret, most), **columns)
    if options.judged_only:
        judged = np.bincount(result.topic, minlength=len(result.topics))
        result = replace(result, num_ret=judged, rank=nth(result.topic))
    return result


def extreme(ranking: Ranking, best: bool) -> Ranking:
    """Return the ranking with the most relevant of each tie first if `best`, else last: the extremes of every measure.

    Raises InputError if -J and -M are combined: no single order is then extreme for every measure.
    """
    if ranking.options.judged_only and ranking.options.most:
        raise InputError("bounds over tied orders are not defined for -J and -M together; drop one of them")
    order = np.lexsort((-ranking.rel, ranking.first, ranking.topic))
    columns = {name: getattr(ranking, name)[order] for name in _ROWS}
    grouped = replace(ranking, **columns)
    step = nth(grouped.topic * (int(ranking.num_ret.max()) + 1) + grouped.first) - 1
    position = grouped.first + step if best else grouped.last - step
    by_rank = np.lexsort((position, grouped.topic))
    rows = {name: columns[name][by_rank] for name in _ROWS}
    return restrict(replace(ranking, **(rows | {"rank": position[by_rank]})))


def nth(topic: Int64Array) -> Int64Array:
    """Return each row's ordinal within its topic, from 1, int64 [m]; the rows of a topic have to be adjacent."""
    row = np.arange(len(topic))
    starts = np.ones(len(topic), np.bool_)
    starts[1:] = topic[1:] != topic[:-1]
    return row - np.maximum.accumulate(np.where(starts, row, 0)) + 1 if len(row) else row


def _counts(
    qrels: Entries[int], run: Entries[float], place: Int64Array, options: TrecOptions, tied: Int64Array
) -> Ranking:
    size = len(qrels.topics)
    rel = qrels.numbers.astype(np.int64)
    returned = np.zeros(size, np.int64)
    returned[place[place >= 0]] = np.bincount(run.topic, minlength=len(run.topics))[place >= 0]
    none = np.empty(0, np.int64)
    return Ranking(
        topics=qrels.topics,
        answered=returned > 0,
        num_ret=returned,
        num_rel=np.bincount(qrels.topic[rel >= options.level], minlength=size),
        num_nonrel=np.bincount(qrels.topic[(rel >= 0) & (rel < options.level)], minlength=size),
        topic=none, rank=none, rel=none, first=none, last=none, score=run.numbers[:0], pool=run.numbers[:0],
        qrels=qrels,
        tied=tied,
        options=options,
    )  # fmt: skip


def _positions(wanted: npt.NDArray[np.bytes_], among: npt.NDArray[np.bytes_]) -> Int64Array:
    if wanted.itemsize == among.itemsize:
        at = np.minimum(np.searchsorted(sortable(among), sortable(wanted)), len(among) - 1)
    else:
        at = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    return np.where(among[at] == wanted, at, -1)
