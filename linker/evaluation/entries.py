"""A run or a set of judgements: rows of (topic, document, value), interned as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from linker.errors import InputError
from linker.evaluation.fields import Fields, Floats, Ints, Words

Value = TypeVar("Value", float, int)  # a run's score, a judgement's relevance
_MIX = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows came from, for messages: a file's name and the line of each row; or a value's name."""

    name: str
    blocks: tuple[tuple[int, int | Ints], ...] = ()  # first row, and its line or the line of each row

    def place(self, row: int) -> str:
        """Name the file and line of a row."""
        for first, line in reversed(self.blocks):
            if row >= first:
                at = line + row - first if isinstance(line, int) else int(line[row - first])
                return f"{self.name}:{at}"
        return self.name


def mixed(hashes: Words, topic: Ints) -> Words:
    """Return the hash of (topic number, document) from the documents' hashes."""
    return (hashes ^ (topic.astype(np.uint64) * _MIX)) * _MIX


@dataclass(frozen=True, eq=False)
class Entries(Mapping[str, dict[str, Value]]):
    """Rows of a run (score) or of judgements (relevance), also a nested mapping.

    `topics`: the distinct topic ids, bytes [t], in byte order; `topic`: int64 [n], each row's topic;
    `documents`: n fields; `hashes`: uint64 [n], of topic and document; `numbers`: float64 [n].
    Raises InputError on a repeated (topic, document), naming its place.
    """

    topics: npt.NDArray[np.bytes_]
    topic: Ints
    documents: Fields
    hashes: Words
    numbers: Floats
    source: Source
    name: str = ""
    kind: str = field(default="run", kw_only=True)

    @classmethod
    def build(
        cls, groups: Fields, lengths: Ints, documents: Fields, hashes: Words, numbers: Floats, **more: Any
    ) -> Entries[Value]:
        """Intern the topics, given one field and one row count for each stretch of rows of one topic."""
        topics, number = np.unique(groups.array(), return_inverse=True)
        topic = np.repeat(number.astype(np.int64), lengths)
        entries = cls(topics, topic, documents, mixed(hashes, topic), numbers, **more)
        entries._refuse_duplicates()
        return entries

    def _refuse_duplicates(self) -> None:
        ordered = np.sort(self.hashes)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
        if not len(repeated):
            return
        rows = np.flatnonzero(np.isin(self.hashes, repeated))
        seen: set[tuple[int, str]] = set()
        for row, topic, document in zip(
            rows.tolist(), self.topic[rows].tolist(), self.documents[rows].texts(), strict=True
        ):
            if (topic, document) in seen:
                raise InputError(
                    f"{self.source.place(row)}: document {document!r} is there twice for topic "
                    f"{self.topic_ids[topic]!r}; keep one line"
                )
            seen.add((topic, document))

    @cached_property
    def topic_ids(self) -> list[str]:
        """The topic ids as strings, in byte order."""
        return [str(t, "utf-8", "surrogateescape") for t in self.topics.tolist()]

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
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
