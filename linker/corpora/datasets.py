"""Documents and queries of the package ir_datasets, by `ir_datasets:ID`, if they are on this disk."""

from pathlib import Path
from typing import Any

import orjson

from indexes.errors import reason_of
from linker.base.datasets import is_name, open_dataset, rows
from linker.base.errors import InputError
from linker.corpora.records import BadLine, Columns, Records, UnusableError, make_document

__all__ = ["documents", "is_name", "queries"]


def documents(name: Path) -> Records:
    """Yield a data set's documents: title, text, other fields as metadata. Raises InputError if there are none."""
    dataset = open_dataset(name)
    if not dataset.has_docs():
        raise InputError(f"{name} has no documents: name the data set that has them")
    for number, doc in enumerate(rows(name, dataset.docs_iter), start=1):
        fields = doc._asdict()
        if "text" not in fields:
            fields = {"doc_id": doc.doc_id, "text": doc.default_text()}
        plain = {k: v for k, v in fields.items() if v is None or isinstance(v, str | int | float)}
        yield _record(name, number, {"id": plain.pop("doc_id"), **plain})


def queries(name: Path) -> Records:
    """Yield the queries of a data set. Raises InputError if there are none."""
    dataset = open_dataset(name)
    if not dataset.has_queries():
        raise InputError(f"{name} has no queries: name a split of it, such as …/test")
    for number, query in enumerate(rows(name, dataset.queries_iter), start=1):
        yield _record(name, number, {"id": query.query_id, "text": query.default_text()})


def _record(name: Path, number: int, fields: dict[str, Any]) -> Any:
    raw = orjson.dumps(fields)
    try:
        return number, make_document(fields, Columns())
    except UnusableError as e:
        return number, BadLine.of(name, number, reason_of(e), raw)
