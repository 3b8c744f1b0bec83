"""Vectors by document id from a .npy or FAISS file, checked before anything is built on them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from indexes.disk.writing import record_of
from indexes.interface import Matrix
from indexes.vectors.faiss_checks import WrongError
from linker.base.errors import InputError
from linker.base.files import map_bytes, nonempty_lines, npy_array, path_text
from linker.corpora.vectors import faiss_reading

SHOWN = 5  # maximum number of ids named in a message
CHECKED = 1 << 22  # numbers checked at a time
NPY = b"\x93NUMPY"


@dataclass(frozen=True)
class GivenVectors:
    """Vectors [n, dim], possibly memory-mapped, and their ids; `notes` name unused parts of the file."""

    path: Path
    matrix: npt.NDArray[np.floating]
    ids: Sequence[str]
    notes: tuple[str, ...] = ()
    _row: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_row", {id_: row for row, id_ in enumerate(self.ids)})

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return int(self.matrix.shape[1])

    @property
    def source(self) -> tuple[str, str]:
        """The path, and a hash that changes with the file's content or the ids; builds record both."""
        content = repr((record_of(self.path), xxhash.xxh3_128_hexdigest("\n".join(self.ids).encode())))
        return path_text(self.path), xxhash.xxh3_128_hexdigest(content.encode())

    def of(self, ids: Sequence[str]) -> Matrix:
        """Return the vectors of documents, float32 [n, dim]. Raises InputError naming ids without a vector."""
        self.check_known(ids)
        return np.asarray(self.matrix[[self._row[id_] for id_ in ids]], np.float32)

    def check_known(self, ids: Iterable[str]) -> None:
        """Raise InputError naming documents without a vector."""
        if missing := [id_ for id_ in ids if id_ not in self._row]:
            raise InputError(f"{self.path} has no vector for {list_ids(missing)}: compute them, too")

    def check(self, ids: Iterable[str], unusable: int) -> None:
        """Raise InputError unless exactly these documents have vectors; `unusable` records have no id."""
        documents = set(ids)
        self.check_known(sorted(documents))
        if unknown := [id_ for id_ in self.ids if id_ not in documents]:
            hint = f" ({unusable} of its records cannot be used)" if unusable else ""
            raise InputError(
                f"{self.path} has vectors for {list_ids(unknown)}, which the corpus does not hold{hint}: leave them out"
            )


def list_ids(ids: Sequence[str]) -> str:
    """Return the first of some ids and how many more there are, for a message."""
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return f"{len(ids):,} id{'s' if len(ids) > 1 else ''}: {', '.join(map(repr, ids[:SHOWN]))}{more}"


def read_vectors(path: Path, ids_file: Path | None) -> GivenVectors:
    """Return the vectors of a .npy or FAISS file; line n of `ids_file` is the id of row n.

    Without `ids_file`, the ids are a FAISS index's own numbers (IndexIDMap). Raises InputError naming repeated ids,
    rows that are NaN, infinite or zero, and other unusable data.
    """
    matrix, numbers, notes = _load(path)
    if ids_file is None and numbers is None:
        raise InputError(
            f"{path} holds no ids: name a file with one id per line, in the order of the vectors, with `ids_file`"
        )
    ids = nonempty_lines(ids_file) if ids_file else [str(n) for n in numbers or ()]
    where = ids_file or path
    if len(ids) != len(matrix):
        raise InputError(f"{where} holds {len(ids):,} ids, but {path} has {len(matrix):,} vectors")
    if twice := [id_ for id_, count in Counter(ids).items() if count > 1]:
        raise InputError(f"{where} repeats {list_ids(twice)}")
    _check_rows(path, matrix, ids)
    return GivenVectors(path, matrix, ids, notes)


def read_matrix(path: Path) -> Matrix:
    """Return query vectors, float32 [n, dim] (a single one may be [dim]). Raises as `read_vectors` does."""
    matrix, _, _ = _load(path, single=True)
    _check_rows(path, matrix, None)
    return np.asarray(matrix, np.float32)


def _load(
    path: Path, *, single: bool = False
) -> tuple[npt.NDArray[np.floating], list[int] | None, tuple[str, ...]]:
    content = map_bytes(path)
    if content[: len(NPY)] != NPY:
        return _from_faiss(path, content)
    matrix = npy_array(path, content)
    if single and matrix.ndim == 1:
        matrix = matrix[None, :]
    if matrix.ndim != 2 or not all(matrix.shape):
        raise InputError(f"{path} has shape {matrix.shape}, expected [n, dim]: one vector per row")
    if matrix.dtype.kind != "f" or matrix.dtype.itemsize > 8:
        raise InputError(f"{path} holds {matrix.dtype}: save the vectors as float16, float32 or float64")
    return matrix, None, ()


def _from_faiss(path: Path, content: Any) -> tuple[Matrix, list[int] | None, tuple[str, ...]]:
    try:
        found = faiss_reading.parse(content)
    except WrongError as e:
        raise InputError(
            f"{path} is neither a .npy file nor an index of FAISS that linker can read ({e}): save its vectors with "
            "numpy.save(FILE, index.reconstruct_n(0, index.ntotal))"
        ) from None
    return found.matrix, found.numbers, (_note(path, found),)


def _note(path: Path, found: faiss_reading.FaissVectors) -> str:
    lossy = "; they come from compressed codes or a transformation, so they are approximate"
    rows, dim = found.matrix.shape
    return (
        f"{path}: {rows:,} vectors of {dim} dimensions from a {found.name} by {found.metric}; lengths and structures "
        f"are ignored: linker compares by cosine and builds its own index{'' if found.exact else lossy}"
    )


def _check_rows(path: Path, matrix: npt.NDArray[np.floating], ids: Sequence[str] | None) -> None:
    """Raise InputError naming the first rows that, as float32, are not finite or are zero."""
    wrong: list[str] = []
    step = max(1, CHECKED // matrix.shape[1])
    for start in range(0, len(matrix), step):
        with np.errstate(over="ignore"):  # values too large for float32 become infinite
            part = np.asarray(matrix[start : start + step], np.float32)
        bad = ~np.isfinite(part).all(axis=1) | ~part.any(axis=1)
        for row in np.flatnonzero(bad).tolist():
            what = "zero" if np.isfinite(part[row]).all() else "NaN or infinite"
            name = f" (id {ids[start + row]!r})" if ids else ""
            wrong.append(f"row {start + row}{name} is {what}")
    if wrong:
        more = f" and {len(wrong) - SHOWN:,} more" if len(wrong) > SHOWN else ""
        raise InputError(f"{path}: {', '.join(wrong[:SHOWN])}{more}: such vectors have no cosine")
