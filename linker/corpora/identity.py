"""Identify a corpus by its content, not by file times, to detect when it has changed."""

from pathlib import Path

import xxhash

from indexes.disk.writing import record_of
from indexes.interface import Document
from linker.base.errors import InputError
from linker.base.files import real
from linker.corpora import BadLine, Columns, datasets, read_corpus
from linker.corpora.reading import check_exists


def identity(path: Path, columns: Columns | None, out: Path) -> str:
    """Return a hash of a corpus: its files' names, sizes and checksums, and the columns read. Raises InputError."""
    if datasets.is_name(path):
        return _of_dataset(path, columns)
    check_exists(path)
    if not (path.is_file() or path.is_dir()):
        raise InputError(
            f"{path} is a pipe or device: a build reads its corpus twice; save it to a file first"
        )
    if path.is_dir() and real(out).is_relative_to(real(path)):
        raise InputError(f"{out} lies inside the corpus {path}: put the index elsewhere")
    _check_outside(path, out)
    _check_usable(path, columns)
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    for link in files:
        if link.is_symlink():
            _check_outside(link, out)
    states = [(p.relative_to(path).as_posix(), record_of(p)) for p in files]
    return xxhash.xxh3_128_hexdigest(repr((states, columns)).encode())


def _of_dataset(name: Path, columns: Columns | None) -> str:
    """Return a hash of the documents from ir_datasets. Raises InputError if none of them can be used."""
    _check_usable(name, columns)
    state = xxhash.xxh3_128(str(name).encode())
    for record in read_corpus(name, columns):
        state.update(repr(record).encode(errors="surrogatepass"))
    return state.hexdigest()


def _check_outside(path: Path, out: Path) -> None:
    """Raise InputError if a path lies inside the index's directory, where building changes files."""
    if real(path).is_relative_to(real(out)):
        raise InputError(
            f"the corpus {path} lies inside {out}, where the index goes: put the index elsewhere"
        )


def _check_usable(path: Path, columns: Columns | None) -> None:
    """Raise InputError unless a corpus holds at least one document; it is read only up to the first."""
    first: BadLine | None = None
    for record in read_corpus(path, columns):
        if isinstance(record, Document):
            return
        first = first or record
    if first:
        raise InputError(
            f"{path}: no record can be used; the first, {first.path}:{first.line}: {first.reason}"
        )
