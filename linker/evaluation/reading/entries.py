"""A run or a set of judgements: rows (topic, document, value) as arrays, with interned topics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from indexes.arrays import distinct
from indexes.dtypes import Float64Array, Int64Array
from linker.base.errors import InputError
from linker.evaluation.reading.fields import Fields, Words
from linker.evaluation.reading.hashing import HashTable

Value = TypeVar("Value", float, int)  # a run's score, a judgement's relevance
_MIX = np.uint64(0xD6E8FEB86659FD93)
_SHORT = 16  # maximum number of rows per topic for a pairwise comparison
_CHUNK = 1 << 15  # number of rows whose hash table fits in the processor's cache
_none = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class RowSource:
    """Where rows came from, for messages: a file's name and the line of each row, or just a name.

    `blocks`: the first row of each block, and the line number of that row or, int64, of each row in the block.
    """

    name: str
    blocks: tuple[tuple[int, int | Int64Array], ...] = ()

    def place(self, row: int) -> str:
        """Return "file:line" of a row, or the bare name."""
        for first, line in reversed(self.blocks):
            if row >= first:
                at = line + row - first if isinstance(line, int) else int(line[row - first])
                return f"{self.name}:{at}"
        return self.name

    def part(self, rows: Int64Array, total: int) -> RowSource:
        """Return the source of the selected `rows`, int64, of a file with `total` rows."""
        ends = [*(first for first, _ in self.blocks[1:]), total]
        lines = [
            np.arange(line, line + end - first) if isinstance(line, int) else line
            for (first, line), end in zip(self.blocks, ends, strict=True)
        ]
        return RowSource(self.name, ((0, np.concatenate(lines)[rows]),))


def sortable(topics: npt.NDArray[np.bytes_]) -> npt.NDArray[Any]:
    """Return topic ids, bytes [t], as an array [t] that sorts in byte order: uint64 if they fit in eight bytes."""
    return topics.view(">u8").astype(np.uint64) if topics.itemsize == 8 else topics


def _unique(groups: Fields) -> tuple[npt.NDArray[np.bytes_], Int64Array]:
    ids = groups.array()
    _, first, number = np.unique(sortable(ids), return_index=True, return_inverse=True)
    return ids[first], number.astype(np.int64)


def mixed(hashes: Words, topic: Int64Array) -> Words:
    """Return hashes of the pairs (topic number, document), uint64 [n], from the documents' `hashes`, uint64 [n]."""
    result = topic.astype(np.uint64)
    result *= _MIX  # in place, to save copies of a large run's columns
    result ^= hashes
    result *= _MIX
    return result


def starts_of(topic: Int64Array) -> Int64Array:
    """Return the first row of every stretch of equal numbers in `topic` [n], int64."""
    return np.concatenate(([0], np.flatnonzero(topic[1:] != topic[:-1]) + 1))[: len(topic)]


def repeats_text(place: str, first: str, topic: str, document: str, count: int) -> str:
    """Return the warning about `count` dropped lines: where the first one is, and which line it repeats."""
    return (
        f"{place}: repeats the judgement in {first} (topic {topic!r}, document {document!r}): "
        f"dropped {count} repeated {'line' if count == 1 else 'lines, of which this is the first'}"
    )


@dataclass(frozen=True, eq=False)
class Entries(Mapping[str, dict[str, Value]]):
    """A run or judgements: a nested mapping topic → document → score or relevance, stored as n rows.

    `topics`: the distinct topic ids, bytes [t], in byte order; `topic`: each row's topic, int64 [n];
    `documents`: the n document ids; `hashes`: their hashes, uint64 [n]; `numbers`: scores or relevances, float64 [n].
    """

    topics: npt.NDArray[np.bytes_]
    topic: Int64Array
    documents: Fields
    hashes: Words
    numbers: Float64Array
    source: RowSource
    name: str = ""
    kind: str = field(default="run", kw_only=True)

    @classmethod
    def build(
        cls,
        groups: Fields,
        lengths: Int64Array,
        documents: Fields,
        hashes: Words,
        numbers: Float64Array,
        warn: Callable[[str], None] | None = None,
        **more: Any,
    ) -> Entries[Value]:
        """Return the entries; adjacent rows of a topic form a group: `groups` has its topic id, `lengths` [g] its size.

        Raises InputError naming both lines if a document repeats within a topic. With `warn`, rows that repeat an
        earlier one with the same value are dropped instead, and `warn` gets one message about all of them.
        """
        topics, number = _unique(groups)
        topic = np.repeat(number, lengths)
        entries = cls(topics, topic, documents, hashes, numbers, **more)
        repeats = entries._repeats(entries._suspects(), identical=warn is not None)
        if not repeats or warn is None:
            return entries
        row, first = repeats[0]
        places = entries.source.place(row), entries.source.place(first)
        name, document = entries.topic_ids[int(topic[row])], documents[row : row + 1].texts()[0]
        warn(repeats_text(*places, name, document, len(repeats)))
        return entries._without([row for row, _ in repeats])

    def _suspects(self) -> Int64Array:
        """Return the rows whose document hash repeats within their topic, ascending."""
        edges = np.append(starts_of(self.topic), len(self.topic))
        whole = len(edges) == len(self.topics) + 1  # the rows of every topic are adjacent
        longest: int = np.diff(edges).max()
        if whole and longest <= _SHORT:
            rows = np.concatenate([_none, *(self._alike(step) for step in range(1, longest))])
        else:  # a few topics at a time
            cuts = np.searchsorted(edges, np.arange(0, len(self.topic), _CHUNK)) if whole else [0]
            cuts = np.unique(np.append(edges[cuts], len(self.topic)))
            rows = np.concatenate([self._repeated(begin, end) for begin, end in pairwise(cuts.tolist())])
        return distinct(rows)

    def _alike(self, step: int) -> Int64Array:
        """Return both rows of each pair of rows of a topic that are `step` rows apart and have the same hash."""
        rows = np.flatnonzero(self.hashes[step:] == self.hashes[:-step])
        rows = rows[self.topic[rows] == self.topic[rows + step]]
        return np.append(rows, rows + step)

    def _repeated(self, begin: int, end: int) -> Int64Array:
        """Return the rows from `begin` to `end` whose hash of topic and document repeats."""
        hashes = mixed(self.hashes[begin:end], self.topic[begin:end])
        repeated = HashTable(hashes).repeated
        return np.flatnonzero(np.isin(hashes, hashes[repeated])) + begin if len(repeated) else _none

    def _repeats(self, rows: Int64Array, *, identical: bool) -> list[tuple[int, int]]:
        """Return the rows in `rows` that repeat an earlier one's document and value, each with the first such row.

        Raises InputError for a row that repeats the document with another value and, unless `identical` rows are
        allowed, for the first that repeats the value, too.
        """
        seen: dict[tuple[int, str], int] = {}
        repeats = []
        pairs = zip(self.topic[rows].tolist(), self.documents[rows].texts(), strict=True)
        for row, (topic, document) in zip(rows.tolist(), pairs, strict=True):
            first = seen.setdefault((topic, document), row)
            if first == row:
                continue
            if not identical or self.numbers[first] != self.numbers[row]:
                raise InputError(
                    f"{self.source.place(row)}: document {document!r} occurs twice for topic "
                    f"{self.topic_ids[topic]!r}{self._remedy(first, row)}"
                )
            repeats.append((row, first))
        return repeats

    def _without(self, rows: Sequence[int]) -> Entries[Value]:
        left = np.delete(np.arange(len(self.topic)), rows)
        return dataclasses.replace(
            self, topic=self.topic[left], documents=self.documents[left], hashes=self.hashes[left],
            numbers=self.numbers[left], source=self.source.part(left, len(self.topic)),
        )  # fmt: skip

    def _remedy(self, first: int, row: int) -> str:
        """Return the end of the error message: where the other line is, whether the two agree, and which to delete."""
        what = "score" if self.kind == "run" else "relevance"
        before, here = (f"{number:.9g}" for number in self.numbers[[first, row]].tolist())
        where = f", first in {self.source.place(first)}" if self.source.blocks else ""
        if before == here:
            return f"{where}, both with {what} {here}: delete one of the two lines"
        return f"{where}, {what} {before} there and {here} here: delete the line that is wrong"

    @cached_property
    def topic_ids(self) -> list[str]:
        """The topic ids as strings, in byte order."""
        return [str(t, "utf-8", "surrogateescape") for t in self.topics.tolist()]

    @cached_property
    def _order(self) -> tuple[Int64Array, Int64Array]:
        """Rows grouped by topic (stable), and where each topic begins in that order."""
        order = np.argsort(self.topic, kind="stable")
        return order, np.searchsorted(self.topic[order], np.arange(len(self.topics) + 1))

    @cached_property
    def _position(self) -> dict[str, int]:
        return {topic: i for i, topic in enumerate(self.topic_ids)}

    def __getitem__(self, topic: str) -> dict[str, Value]:
        order, begin = self._order
        at = self._position[topic]
        rows = order[begin[at] : begin[at + 1]]
        numbers = self.numbers[rows]
        values = numbers.tolist() if self.kind == "run" else numbers.astype(np.int64).tolist()
        return dict(zip(self.documents[rows].texts(), cast(list[Value], values), strict=True))

    def place(self, topic: str, document: str) -> str:
        """Return "file:line" of a topic's document, which must exist."""
        order, begin = self._order
        at = self._position[topic]
        rows = order[begin[at] : begin[at + 1]]
        return self.source.place(int(rows[self.documents[rows].texts().index(document)]))

    def __iter__(self) -> Iterator[str]:
        return iter(self.topic_ids)

    def __len__(self) -> int:
        return len(self.topics)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.source.name}: {len(self.topics)} topics, {len(self.topic)} rows>"
