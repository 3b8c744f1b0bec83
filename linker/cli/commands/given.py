"""Arguments of the commands: an index as a directory or opened, queries and judgements as files or values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from indexes.hybrid import OnFailure
from linker.base.errors import InputError
from linker.corpora import Query, read_queries
from linker.engine.engine import Engine
from linker.evaluation.reading.judgements import merged_qrels

Paths = str | Path | Sequence[str | Path]
Queries = Paths | Mapping[str, str]
Judgements = Paths | Mapping[str, Mapping[str, float]]


@contextlib.contextmanager
def opened(
    index: Paths | Engine, encoder: str | None = None, on_failure: OnFailure = "degrade"
) -> Iterator[Engine]:
    """Yield the engine of an index, or of several as one; an engine opened here is closed at the end."""
    if isinstance(index, Engine):
        yield index
        return
    with Engine.open(index, encoder=encoder, on_failure=on_failure) as engine:
        yield engine


def paths(given: Paths) -> list[Path]:
    """Return one path or several as a list."""
    return [Path(given)] if isinstance(given, (str, Path)) else [Path(path) for path in given]


def queries_of(given: Queries) -> list[Query]:
    """Return the queries of files, or of a mapping from ids to texts."""
    if isinstance(given, Mapping):
        return [Query(id_, text) for id_, text in given.items()]
    return read_all(paths(given))


def read_all(files: Iterable[Path]) -> list[Query]:
    """Return the queries of all files; a query in several files must have the same text in each."""
    queries: dict[str, tuple[Query, Path]] = {}
    for path in files:
        for query in read_queries(path):
            first, where = queries.setdefault(query.id, (query, path))
            if first.text != query.text:
                raise InputError(f"the query {query.id!r} has one text in {where} and another one in {path}")
    return [query for query, _ in queries.values()]


def judgements_of(given: Judgements) -> Mapping[str, Mapping[str, float]]:
    """Return the judgements from files, or as given: query → document → relevance."""
    return given if isinstance(given, Mapping) else merged_qrels(paths(given))
