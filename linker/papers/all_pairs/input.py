"""Reading vectors and links from files for the pair evaluation."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from linker.base.errors import InputError
from linker.base.files import map_bytes, nonempty_lines, npy_array, read_bytes
from linker.base.terminal import quantity

Side = tuple[int, Path | None]  # the number of vectors, and the file of their ids


def read_vectors(path: Path) -> npt.NDArray[np.float32]:
    """Return a `.npy` matrix as float32 [n, d], mapped if possible. Raises InputError for anything else."""
    matrix = npy_array(path, map_bytes(path))
    if matrix.ndim != 2:
        raise InputError(f"{path}: expected a .npy matrix of numbers [n, d]")
    return np.asarray(matrix, np.float32)


def read_links(path: Path, articles: Side, tweets: Side) -> npt.NDArray[np.int64]:
    """Return lines "article tweet" as row numbers, int64 [l, 2].

    The two columns are ids if a file of ids is given, otherwise row numbers from 0. Raises InputError naming the line
    of a wrong column count or an unknown id or number, or if there are no links.
    """
    numbers = [_numbers(side, what) for side, what in ((articles, "article"), (tweets, "tweet"))]
    try:
        lines = read_bytes(path).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}): convert it first") from None
    links = []
    for line, text in enumerate(lines, 1):
        cells = text.split()
        if len(cells) not in (0, 2):
            raise InputError(f"{path}:{line}: {quantity(len(cells), 'column')}; expected: article tweet")
        if cells:
            links.append(
                [_number(cell, known, f"{path}:{line}") for cell, known in zip(cells, numbers, strict=True)]
            )
    if not links:
        raise InputError(f"{path}: there are no links")
    return np.array(links, np.int64)


def _numbers(side: Side, what: str) -> tuple[dict[str, int], str]:
    size, path = side
    if path is None:
        return {str(i): i for i in range(size)}, f"{what} number (0 to {size - 1}; for ids give --{what}-ids)"
    ids = nonempty_lines(path)
    known = {id_: i for i, id_ in enumerate(ids)}
    if len(ids) != size or len(known) != size:
        raise InputError(
            f"{path}: {len(known)} distinct ids on {len(ids)} lines for {size} vectors; give one id per vector"
        )
    return known, f"{what} id of {path}"


def _number(cell: str, known: tuple[dict[str, int], str], place: str) -> int:
    if cell not in known[0]:
        raise InputError(f"{place}: {cell!r} is not a known {known[1]}")
    return known[0][cell]
