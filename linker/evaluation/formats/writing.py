"""Write runs in the formats that other tools read."""

import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import orjson

from indexes.errors import importing
from linker.base.errors import InputError
from linker.base.files import STDIO
from linker.evaluation.reading.trec import replacing_file, run_lines

RunFormat = Literal["trec", "ranx", "pytrec_eval", "parquet", "jsonl"]
FORMATS: tuple[RunFormat, ...] = get_args(RunFormat)
SUFFIXES: dict[str, RunFormat] = {
    ".json": "ranx", ".parquet": "parquet", ".parq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl",
}  # fmt: skip
Topic = tuple[str, Sequence[str], npt.ArrayLike]


def format_of(path: Path) -> RunFormat:
    """Return the format indicated by a file's name: TREC's, unless it ends in .json, .jsonl or .parquet."""
    return SUFFIXES.get(Path(path.name.lower().removesuffix(".gz")).suffix, "trec")


def write_run_as(
    path: Path, run: Iterable[Topic], kind: RunFormat | None = None, name: str = "linker"
) -> None:
    """Write (topic, n document ids, scores [n]) to a file, atomically, or to stdout (`-`); ".gz" is compressed.

    `kind` None: by the file's name. ranx and pytrec_eval use the same JSON; only TREC's format contains the run's name.
    Raises the InputErrors of `write_run`, MissingExtraError for Parquet without its extra.
    """
    kind, where = kind or format_of(path), "the run" if path == STDIO else str(path)
    if kind == "parquet" and path == STDIO and sys.stdout.isatty():
        raise InputError("Parquet is not text for a terminal: name a file with `out`")
    with replacing_file(path) as out:
        if kind == "trec":
            for line in run_lines(run, name, where):
                out.write(line.encode("utf-8", "surrogateescape"))
        else:
            out.write(_dumped(_nested(run, where), kind))


def _dumped(nested: dict[str, dict[str, float]], kind: RunFormat) -> bytes:
    if kind == "parquet":
        topics = [topic for topic, scores in nested.items() for _ in scores]
        documents = [id_ for scores in nested.values() for id_ in scores]
        return _parquet(topics, documents, [s for scores in nested.values() for s in scores.values()])
    if kind == "jsonl":
        lines = [{"query": t, "ids": list(s), "scores": list(s.values())} for t, s in nested.items()]
        return b"".join(orjson.dumps(line) + b"\n" for line in lines)
    return orjson.dumps(nested, option=orjson.OPT_INDENT_2) + b"\n"


def _nested(run: Iterable[Topic], where: str) -> dict[str, dict[str, float]]:
    """Return topic → document → score, in the run's order. Raises the InputErrors of `write_run`."""
    nested: dict[str, dict[str, float]] = {}
    for topic, ids, scores in run:
        values: list[Any] = np.asarray(scores, np.float64).tolist()
        if topic in nested:
            raise InputError(f"{where}: topic {topic!r} is given twice")
        if len(ids) != len(values) or len(set(ids)) < len(ids) or not np.isfinite(values).all():
            raise InputError(
                f"{where}: topic {topic!r} needs distinct documents and one finite score per document"
            )
        nested[topic] = dict(zip(ids, values, strict=True))
    return nested


def _parquet(topics: list[str], documents: list[str], scores: list[float]) -> bytes:
    with importing("writing Parquet", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    columns = {"q_id": pa.array(topics, pa.string()), "doc_id": pa.array(documents, pa.string())}
    table = pa.table({**columns, "score": pa.array(scores, pa.float64())})
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()
