"""Sort a run's rows as trec_eval does and find the judged ones; nothing else has to touch every row."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from indexes.dtypes import Float64Array, FloatArray, Int64Array
from linker.evaluation.reading.entries import Entries, mixed, starts_of
from linker.evaluation.reading.fields import Fields, Words
from linker.evaluation.reading.hashing import HashTable

Compat = Literal["trec_eval-9", "trec_eval-10"]
COMPAT: tuple[Compat, ...] = ("trec_eval-9", "trec_eval-10")

_CHUNK = 1 << 17  # rows looked up at a time

RowIndex = Int64Array | slice


@dataclass(frozen=True)
class Ordered:
    """Rows of judged topics, grouped by topic, by descending score, with ties not yet broken.

    `rows`: their row numbers in the run, int64 [n] or a slice; `topic`: their topic in the judgements, int64 [n];
    `score` [n]; `begin`: the first position of each topic, int64 [t].
    """

    rows: RowIndex
    topic: Int64Array
    score: FloatArray
    begin: Int64Array


def sort(run: Entries[float], place: Int64Array, compat: Compat) -> Ordered:
    """Sort the judged topics' rows, unless they are sorted; `place`: each topic's position in the judgements, or −1."""
    topic, score = place[run.topic], _compared(run.numbers, compat)
    rows: RowIndex = slice(None)
    if (place < 0).any():
        rows = np.flatnonzero(topic >= 0)
        topic, score = topic[rows], score[rows]
    starts = starts_of(topic)
    rising = score[1:] > score[:-1]
    rising[starts[1:] - 1] = False
    if len(starts) > np.count_nonzero(place >= 0) or rising.any():
        order = _argsort(topic, score)
        rows = order if isinstance(rows, slice) else rows[order]
        topic, score = topic[order], score[order]
        starts = starts_of(topic)
    begin = np.zeros(int(place.max()) + 1, np.int64)
    begin[topic[starts]] = starts
    return Ordered(rows, topic, score, begin)


def _compared(numbers: Float64Array, compat: Compat) -> FloatArray:
    if compat == "trec_eval-10":
        return numbers
    with np.errstate(over="ignore"):  # numbers out of range become infinite, as in C
        return numbers.astype(np.float32)


def _argsort(topic: Int64Array, score: FloatArray) -> Int64Array:
    """Return the order by topic, then by descending score; a topic and a float32 score fit into one integer key."""
    if score.dtype != np.float32:
        return np.lexsort((-score, topic))
    bits = score.view(np.uint32)  # −0 sorts next to 0, which is enough: ties are found by value
    falling = np.where(bits >> np.uint32(31), bits, ~(bits | np.uint32(1 << 31)))
    return np.argsort(topic.astype(np.uint64) << np.uint64(32) | falling)


def judged_rows(qrels: Entries[int], run: Entries[float], ordered: Ordered) -> tuple[Int64Array, Int64Array]:
    """Return the positions of the judged documents, int64 [m], ascending, and the rows of their judgements [m].

    Candidates are found by hash and confirmed byte by byte; a collision of 64-bit hashes falls back to a slow path.
    """
    table = HashTable(mixed(qrels.hashes, qrels.topic))
    hashes = run.hashes[ordered.rows]
    positions = _maybe(hashes, ordered.topic, qrels)
    answer = table.find(mixed(hashes[positions], ordered.topic[positions]))
    positions, answer = positions[answer >= 0], answer[answer >= 0]
    documents = run.documents[positions if isinstance(ordered.rows, slice) else ordered.rows[positions]]
    same = documents.equal(qrels.documents[answer]) & (ordered.topic[positions] == qrels.topic[answer])
    if same.all():
        return positions, answer
    return _judged_slowly(qrels, run, ordered)


def _maybe(hashes: Words, topic: Int64Array, qrels: Entries[int]) -> Int64Array:
    """Return the positions of documents that may be judged, according to a bitmap of upper hash bits per topic."""
    bits = (8 * len(qrels.topic) // len(qrels)).bit_length()
    table = np.zeros(len(qrels) << bits, np.bool_)
    table[_flag(qrels.hashes, qrels.topic, bits)] = True
    parts = [slice(i, i + _CHUNK) for i in range(0, len(hashes), _CHUNK)]
    positions = [np.flatnonzero(table[_flag(hashes[p], topic[p], bits)]) + p.start for p in parts]
    return np.concatenate(positions)


def _flag(hashes: Words, topic: Int64Array, bits: int) -> Int64Array:
    return topic << bits | (hashes >> np.uint64(64 - bits)).view(np.int64)


def _judged_slowly(
    qrels: Entries[int], run: Entries[float], ordered: Ordered
) -> tuple[Int64Array, Int64Array]:
    pairs = zip(qrels.topic.tolist(), qrels.documents.texts(), strict=True)
    row_of = {pair: row for row, pair in enumerate(pairs)}
    documents = zip(ordered.topic.tolist(), run.documents[ordered.rows].texts(), strict=True)
    answer = np.array([row_of.get(pair, -1) for pair in documents], np.int64)
    positions = np.flatnonzero(answer >= 0)
    return positions, answer[positions]


def ties(ordered: Ordered, judged: Int64Array, topics: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return where the tie of each judged row begins and ends, int64 [m] each, and how many rows are tied per topic."""
    same = ordered.score[1:] == ordered.score[:-1]
    same &= ordered.topic[1:] == ordered.topic[:-1]
    joins = np.flatnonzero(same)  # position i is tied with i + 1
    opens = joins[np.diff(joins, prepend=-2) > 1]
    closes = joins[np.diff(joins, append=len(same) + 2) > 1] + 1
    tied = np.bincount(ordered.topic[opens], closes - opens + 1, minlength=topics).astype(np.int64)
    if not len(opens):
        return judged, judged, tied
    at = np.maximum(np.searchsorted(opens, judged, side="right") - 1, 0)
    inside = (opens[at] <= judged) & (judged <= closes[at])
    return np.where(inside, opens[at], judged), np.where(inside, closes[at], judged), tied


def break_ties(
    documents: Fields, ordered: Ordered, judged: Int64Array, first: Int64Array, last: Int64Array
) -> Int64Array:
    """Return the judged rows' positions, int64 [m], after sorting every tie by id in descending byte order.

    `judged`, `first`, `last` [m]: positions of the rows and of the ends of their ties.
    """
    in_tie = last > first
    if not in_tie.any():
        return judged
    opens, at = np.unique(first[in_tie], return_index=True)
    sizes = last[in_tie][at] - opens + 1
    ends = np.cumsum(sizes)
    member = np.arange(ends[-1]) + np.repeat(opens - (ends - sizes), sizes)  # all positions of these ties
    rows = member if isinstance(ordered.rows, slice) else ordered.rows[member]
    keys = [~key for key in documents[rows].sort_keys()]
    order = np.lexsort((*keys, np.repeat(opens, sizes)))
    position = np.empty(len(member), np.int64)
    position[order] = member
    result = judged.copy()
    result[in_tie] = position[np.searchsorted(member, judged[in_tie])]
    return result
