"""A run or a set of judgements: rows (topic, document, value) as arrays, with interned topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from indexes.dtypes import Float64Array, Int64Array
from linker.errors import InputError
from linker.evaluation.reading.fields import Fields, Words
from linker.evaluation.reading.hashing import HashTable

Value = TypeVar("Value", float, int)  # a run's score, a judgement's relevance
_MIX = np.uint64(0xD6E8FEB86659FD93)
_SHORT = 16  # rows of a topic up to which all of them are compared with each other
_CHUNK = 1 << 15  # rows whose hash table stays in the processor's cache
_none = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows came from, for messages: a file's name and the line of each row, or just a name.

    `blocks`: the first row of each block, and its line number or those of all rows in the block, int64.
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


def sortable(topics: npt.NDArray[np.bytes_]) -> npt.NDArray[Any]:
    """Return topic ids, bytes [t], as an array [t] that sorts in byte order: uint64 where eight bytes hold them."""
    return topics.view(">u8").astype(np.uint64) if topics.itemsize == 8 else topics


def _unique(groups: Fields) -> tuple[npt.NDArray[np.bytes_], Int64Array]:
    """Return the distinct topic ids in byte order, bytes [t], and each group's number among them, int64."""
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
    """Return the first row of every run of equal numbers in `topic` [n], int64."""
    return np.concatenate(([0], np.flatnonzero(topic[1:] != topic[:-1]) + 1))[: len(topic)]


@dataclass(frozen=True, eq=False)
class Entries(Mapping[str, dict[str, Value]]):
    """A run or judgements: a nested mapping topic → document → score or relevance, stored as n rows.

    `topics`: the distinct topic ids, bytes [t], in byte order; `topic`: each row's topic, int64 [n];
    `documents`: n fields; `hashes`: those of the documents, uint64 [n]; `numbers`: scores or relevances, float64 [n].
    """

    topics: npt.NDArray[np.bytes_]
    topic: Int64Array
    documents: Fields
    hashes: Words
    numbers: Float64Array
    source: Source
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
        **more: Any,
    ) -> Entries[Value]:
        """Return the entries; each group is a run of rows of one topic, with its id in `groups` and its `lengths` [g].

        Raises InputError naming the line where a document repeats within a topic.
        """
        topics, number = _unique(groups)
        topic = np.repeat(number, lengths)
        entries = cls(topics, topic, documents, hashes, numbers, **more)
        entries._refuse_duplicates()
        return entries

    def _refuse_duplicates(self) -> None:
        edges = np.append(starts_of(self.topic), len(self.topic))
        whole = len(edges) == len(self.topics) + 1  # the rows of every topic are adjacent
        longest: int = np.diff(edges).max()
        if whole and longest <= _SHORT:
            rows = np.concatenate([_none, *(self._alike(step) for step in range(1, longest))])
        else:  # a few topics at a time
            cuts = np.searchsorted(edges, np.arange(0, len(self.topic), _CHUNK)) if whole else [0]
            cuts = np.unique(np.append(edges[cuts], len(self.topic)))
            rows = np.concatenate([self._repeated(begin, end) for begin, end in pairwise(cuts.tolist())])
        self._compare(np.unique(rows))

    def _alike(self, step: int) -> Int64Array:
        """Return the rows whose hash equals that of the row `step` later in the topic, and those rows too."""
        rows = np.flatnonzero(self.hashes[step:] == self.hashes[:-step])
        rows = rows[self.topic[rows] == self.topic[rows + step]]
        return np.append(rows, rows + step)

    def _repeated(self, begin: int, end: int) -> Int64Array:
        """Return the rows from `begin` to `end` whose hash of topic and document repeats."""
        hashes = mixed(self.hashes[begin:end], self.topic[begin:end])
        repeated = HashTable(hashes).repeated
        return np.flatnonzero(np.isin(hashes, hashes[repeated])) + begin if len(repeated) else _none

    def _compare(self, rows: Int64Array) -> None:
        """Raise InputError where rows of equal hash hold the same document."""
        seen: dict[tuple[int, str], int] = {}
        pairs = zip(self.topic[rows].tolist(), self.documents[rows].texts(), strict=True)
        for row, (topic, document) in zip(rows.tolist(), pairs, strict=True):
            first = seen.setdefault((topic, document), row)
            if first != row:
                raise InputError(
                    f"{self.source.place(row)}: document {document!r} occurs twice for topic "
                    f"{self.topic_ids[topic]!r}{self._remedy(first, row)}"
                )

    def _remedy(self, first: int, row: int) -> str:
        """Return the end of the message: where the other line is, whether the two agree, and which one to delete."""
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

    def __iter__(self) -> Iterator[str]:
        return iter(self.topic_ids)

    def __len__(self) -> int:
        return len(self.topics)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.source.name}: {len(self.topics)} topics, {len(self.topic)} rows>"
