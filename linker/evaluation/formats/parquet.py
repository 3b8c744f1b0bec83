"""Parquet files of triples, as ranx writes them: columns q_id, doc_id, score. Needs the extra `parquet`."""

from __future__ import annotations

import io
from typing import Any

from indexes.errors import importing
from linker.base.errors import InputError

MAGIC = b"PAR1"


class ArrowTable:
    """An Arrow table with the part of a data frame's interface that reading needs."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.columns: list[str] = table.column_names

    def __getitem__(self, name: str) -> ArrowTable:
        return ArrowTable(self._table.select([name]))

    def to_list(self) -> list[Any]:
        """Return the values of the only column."""
        return list(self._table.column(0).to_pylist())


def frame(data: bytes) -> ArrowTable:
    """Return the table in a Parquet file. Raises InputError if it is damaged, MissingExtraError."""
    with importing("reading Parquet", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        return ArrowTable(pq.read_table(io.BytesIO(data)))
    except (pa.ArrowException, OSError) as e:
        raise InputError(f"not a Parquet file that can be read: {e}") from e


def dump(topics: list[str], documents: list[str], scores: list[float]) -> bytes:
    """Return a Parquet file of a run, with ranx's column names. Raises MissingExtraError."""
    with importing("writing Parquet", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    columns = {"q_id": pa.array(topics, pa.string()), "doc_id": pa.array(documents, pa.string())}
    table = pa.table({**columns, "score": pa.array(scores, pa.float64())})
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()
