"""Runs and judgements from a file, a nested mapping, or a pandas or polars data frame."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from indexes.dtypes import Float64Array
from linker.base.errors import InputError
from linker.evaluation.reading.entries import Entries, RowSource
from linker.evaluation.reading.fields import Fields
from linker.evaluation.reading.trec import read_qrels, read_run

_TOPIC = ("topic", "query_id", "query-id", "qid", "q_id", "query")
_DOCUMENT = ("document", "doc_id", "docno", "docid", "corpus-id", "corpus_id", "doc")
_SCORE = ("score", "sim", "similarity")
_RELEVANCE = ("relevance", "rel", "label", "score")


class Frame(Protocol):
    """A data frame by pandas or polars."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""
        ...

    def __getitem__(self, name: Any, /) -> Any:
        """Return a column."""
        ...


def as_run(run: Any) -> Entries[float]:
    """Return the run in a path, mapping or data frame. Raises InputError if it is malformed or empty."""
    return _entries(run, "run", _SCORE)


def as_qrels(qrels: Any) -> Entries[int]:
    """Return the judgements in a path, mapping or data frame. Raises InputError if malformed or empty."""
    return _entries(qrels, "qrels", _RELEVANCE)


def _entries(value: Any, kind: str, columns: tuple[str, ...]) -> Entries[Any]:
    if isinstance(value, Entries):
        return value
    if isinstance(value, (str, os.PathLike)):
        return read_run(value) if kind == "run" else read_qrels(value)
    if isinstance(value, Mapping):
        return _from_mapping(value, kind)
    if hasattr(value, "columns"):
        return _from_frame(value, kind, columns)
    raise InputError(
        f"{kind}: cannot read a {type(value).__name__}; give a path, a nested dict or a data frame"
    )


def _from_mapping(value: Mapping[Any, Any], kind: str) -> Entries[Any]:
    topics: list[Any] = []
    lengths: list[int] = []
    documents: list[Any] = []
    numbers: list[Any] = []
    for topic, answers in value.items():
        if not isinstance(answers, Mapping):
            raise InputError(f"{kind}: topic {topic!r} has a {type(answers).__name__}, expected a mapping")
        if answers:
            topics.append(topic)
            lengths.append(len(answers))
            documents.extend(answers.keys())
            numbers.extend(answers.values())
    return _build(kind, topics, lengths, documents, numbers)


def _from_frame(frame: Any, kind: str, columns: tuple[str, ...]) -> Entries[Any]:
    topic, document, number = (
        _column(frame, kind, what, names)
        for what, names in (("topic", _TOPIC), ("document", _DOCUMENT), ("value", columns))
    )
    return _build(kind, topic, [1] * len(topic), document, number)


def _column(frame: Any, kind: str, what: str, names: tuple[str, ...]) -> list[Any]:
    for name in names:
        if name in frame.columns:
            return list(frame[name].to_list())
    raise InputError(
        f"{kind}: there is no {what} column: call it one of {', '.join(names)}; the columns are {list(frame.columns)}"
    )


def _build(
    kind: str, topics: list[Any], lengths: list[int], documents: list[Any], numbers: Iterable[Any]
) -> Entries[Any]:
    if not topics:
        raise InputError(f"{kind}: it is empty")
    fields = Fields.of(_ids(documents, kind))
    values = _numbers(numbers, documents, kind)
    source = RowSource(kind)
    heads, counts = Fields.of(_ids(topics, kind)), np.array(lengths, np.int64)
    return Entries.build(heads, counts, fields, fields.hashes(), values, source=source, name="run", kind=kind)


def _ids(values: list[Any], kind: str) -> list[str]:
    texts = [value if isinstance(value, str) else _id(value, kind) for value in values]
    if "" in texts or "\0" in "".join(texts):
        raise InputError(f"{kind}: an id is empty or contains a NUL character")
    return texts


def _id(value: Any, kind: str) -> str:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(value)
    raise InputError(
        f"{kind}: id {value!r} is a {type(value).__name__}; read ids as strings, since numbers lose digits"
    )


def _numbers(values: Iterable[Any], documents: Sequence[Any], kind: str) -> Float64Array:
    try:
        numbers = np.array([float(v) for v in values], np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{kind}: {error}") from error
    bad = np.isnan(numbers) if kind == "run" else numbers != np.rint(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        wanted = "a score" if kind == "run" else "an integer"
        raise InputError(f"{kind}: the value {numbers[row]:g} of document {documents[row]!r} is not {wanted}")
    return numbers
