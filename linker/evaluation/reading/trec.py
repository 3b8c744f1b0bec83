"""Read and write TREC runs and judgements; the error for a malformed file names the line."""

import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from indexes.dtypes import Float64Array, Int64Array
from linker.base.errors import InputError
from linker.base.files import replacing
from linker.evaluation.reading.columns import Block, PathLike, line_count, line_end, lines, load
from linker.evaluation.reading.decimals import numbers
from linker.evaluation.reading.entries import Entries, RowSource
from linker.evaluation.reading.fields import PAD, Bytes, Fields

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_RUN_COLUMNS = "topic Q0 document rank score name"
_QRELS_COLUMNS = "topic 0 document relevance"


def read_run(path: PathLike) -> Entries[float]:
    """Read a TREC run of six columns; the rank column and any further columns are ignored. ".gz" is decompressed.

    Raises InputError naming file and line if there are too few columns, a score is not a number or NaN, a document
    repeats within a topic, or the file is empty.
    """
    return run_of(load(path), str(path))


def run_of(buffer: Bytes, name: str) -> Entries[float]:
    """Return the run in `buffer`, the text of the file `name` as `load` returns it. Raises the errors of `read_run`."""
    rows, label = _Rows(buffer, name), [""]
    for block in lines(buffer, name, 6, None, _RUN_COLUMNS):
        rows.add(block, 2, _scores(block, name))
        label = block.column(5, slice(-1, None)).texts() or label
    return rows.entries(kind="run", name=label[0])


def read_qrels(path: PathLike, *, warn: Callable[[str], None] | None = None) -> Entries[int]:
    """Read judgements: TREC's four columns, or BEIR's three with a header. ".gz" is decompressed.

    With `warn`, lines that repeat a judgement with the same relevance are dropped and `warn` gets a message that
    names file and lines; by default they are an error, as in trec_eval. Raises InputError naming file and line if the
    column count is wrong, a relevance is not an integer, a document repeats within a topic, or the file is empty.
    """
    return qrels_of(load(path), str(path), warn)


def qrels_of(buffer: Bytes, name: str, warn: Callable[[str], None] | None = None) -> Entries[int]:
    """Return the judgements in `buffer`, the text of the file `name` as `load` returns it, as `read_qrels` does."""
    header, rows = _beir_header(buffer, name), _Rows(buffer, name)
    columns, wanted = (3, "query-id corpus-id score") if header else (4, _QRELS_COLUMNS)
    for block in lines(buffer, name, columns, columns, wanted, header or PAD, 1 + bool(header)):
        rows.add(block, columns - 2, _relevances(block, name))
    return rows.entries(kind="qrels", name="", warn=warn)


def write_run(
    path: PathLike, run: Iterable[tuple[str, Sequence[str], npt.ArrayLike]], name: str = "linker"
) -> None:
    """Write (topic, n document ids, scores [n]) as a TREC run, atomically; ".gz" is compressed.

    Scores are printed with nine significant digits. Lines are in the order in which trec_eval ranks the printed run:
    by score, then by document id in byte order, both descending. Raises InputError if a score is NaN, an id is empty,
    contains white space or repeats, ids and scores differ in number, or the file cannot be written.
    """
    with replacing_file(Path(path)) as out:
        for line in run_lines(run, name, str(path)):
            out.write(line.encode("utf-8", "surrogateescape"))


def run_lines(
    run: Iterable[tuple[str, Sequence[str], npt.ArrayLike]], name: str = "linker", where: str = "the run"
) -> Iterator[str]:
    """Yield a TREC run's lines as `write_run` writes them, with the same errors, which begin with `where`."""
    seen = set[str]()
    _check_column(name, "run name", where)
    for topic, ids, scores in run:
        if topic in seen:
            raise InputError(f"{where}: topic {topic!r} is given twice")
        seen.add(topic)
        yield from _run_lines(topic, ids, scores, name, where)


def _run_lines(topic: str, ids: Sequence[str], scores: npt.ArrayLike, name: str, path: str) -> Iterator[str]:
    printed = [f"{score:.9g}" for score in np.asarray(scores, np.float64).tolist()]
    if len(ids) != len(printed) or "nan" in printed or len(set(ids)) != len(ids):
        raise InputError(
            f"{path}: topic {topic!r} needs distinct documents and one score, not NaN, per document"
        )
    for text in (topic, *ids):
        _check_column(text, "id", path)
    rows = sorted(zip(map(float, printed), map(_in_bytes, ids), ids, printed, strict=True), reverse=True)
    for rank, (_, _, document, score) in enumerate(rows, 1):
        yield f"{topic} Q0 {document} {rank} {score} {name}\n"


def _in_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _check_column(text: str, what: str, path: str) -> None:
    if not isinstance(text, str) or not text or "\0" in text or len(_in_bytes(text).split()) != 1:
        raise InputError(
            f"{path}: {what} {text!r} is empty or contains white space, so it cannot be a TREC column"
        )


@contextmanager
def replacing_file(target: Path) -> Iterator[IO[bytes]]:
    """Open a file to be replaced atomically, as `replacing` does; ".gz" is compressed."""
    with replacing(target) as raw:
        if target.suffix == ".gz":
            with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                yield packed  # type: ignore[misc] # a GzipFile is a binary file to its users
        else:
            yield raw


def _scores(block: Block, path: str) -> Float64Array:
    fields = block.column(4)
    values = numbers(fields)
    bad = np.isnan(values)
    if bad.any():
        row = int(np.argmax(bad))
        text = fields[row : row + 1].texts()[0]
        raise InputError(f"{block.place(row, path)}: score {text!r} is not a number that can be ranked")
    return values


def _relevances(block: Block, path: str) -> Float64Array:
    fields = block.column(block.after.shape[1] - 1)
    digit = fields.buffer[fields.start] - ord("0")
    values = digit.astype(np.float64)
    rest = np.flatnonzero((fields.length > 1) | (digit > 9))
    texts = fields[rest].texts()
    known = [bool(_INTEGER.fullmatch(text)) for text in texts]
    if not all(known):
        at = known.index(False)
        place = block.place(int(rest[at]), path)
        raise InputError(f"{place}: relevance {texts[at]!r} is not an integer (at most nine digits)")
    values[rest] = [int(text) for text in texts]
    return values


def _beir_header(buffer: Bytes, path: str) -> int:
    """Return the offset after BEIR's header line, or 0 if the file is not in BEIR's format."""
    stop = line_end(buffer, PAD + 1)
    cells = buffer[PAD:stop].tobytes().split()
    if len(cells) != 3:
        return 0
    if cells[2].lower() not in (b"score", b"relevance", b"rel", b"label"):
        raise InputError(
            f"{path}:1: three columns without BEIR's header; put 'query-id<TAB>corpus-id<TAB>score' on top, "
            f"or give four columns: {_QRELS_COLUMNS}"
        )
    return stop


class _Rows:
    """Collects the columns of all lines (document, hash, value, line number) and the groups of lines with one topic."""

    def __init__(self, buffer: Bytes, path: str) -> None:
        most = line_count(buffer)  # columns are allocated once and filled block by block
        self._documents = Fields(buffer, np.empty(most, np.int64), np.empty(most, np.int64))
        self._hashes = np.empty(most, np.uint64)
        self._values = np.empty(most)
        self._heads: list[Fields] = []
        self._lengths: list[Int64Array] = []
        self._places: list[tuple[int, int | Int64Array]] = []
        self._count = 0
        self._path = path

    def add(self, block: Block, document: int, values: Float64Array) -> None:
        topic, documents = block.column(0), block.column(document)
        first = np.flatnonzero(topic.changes())
        self._heads.append(topic[first])
        self._lengths.append(np.diff(first, append=len(topic)))
        self._places.append((self._count, block.line))
        here = slice(self._count, self._count + len(topic))
        self._documents.start[here] = documents.start
        self._documents.length[here] = documents.length
        self._hashes[here] = documents.hashes()
        self._values[here] = values
        self._count += len(topic)

    def entries(self, *, kind: str, name: str, warn: Callable[[str], None] | None = None) -> Entries[Any]:
        if not self._count:
            raise InputError(f"{self._path}: no line after the header")
        rows = slice(self._count)
        starts, lengths = [h.start for h in self._heads], [h.length for h in self._heads]
        heads = Fields(self._documents.buffer, np.concatenate(starts), np.concatenate(lengths))
        columns = (self._documents[rows], self._hashes[rows], self._values[rows])
        source = RowSource(self._path, tuple(self._places))
        more: dict[str, Any] = {"source": source, "name": name, "kind": kind, "warn": warn}
        return Entries.build(heads, np.concatenate(self._lengths), *columns, **more)
