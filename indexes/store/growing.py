"""The vectors of several segments in one array, which later generations extend instead of copying it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path

import numpy as np

from indexes.disk.reading import REMEDY
from indexes.interface import DamagedError, Matrix

ROOM = 4  # an array has room for a quarter more rows than needed; only written rows take memory


class Growing:
    """Write-once rows: a generation has the first rows, and the rows after them may belong to later generations.

    Several threads may extend it at once.
    """

    def __init__(self, rows: int, dim: int) -> None:
        """Start without rows, with room for somewhat more than `rows`."""
        self._array = np.empty((rows + rows // ROOM + 1, dim), dtype="<f4")
        self._written = 0
        self._lock = threading.Lock()

    def extend(self, first: int, parts: Iterable[tuple[Path, int]]) -> Matrix | None:
        """Return the rows before `first` and those of all `parts` after them: float32 [rows, dim], read-only.

        `parts` are files of vectors, and their numbers of rows. None if there is no room for them, or other rows are
        in their place. Raises DamagedError if a file is too short.
        """
        with self._lock:
            end = first
            for path, rows in parts:
                begin, end = end, end + rows
                if begin > self._written or end > len(self._array):
                    return None
                with path.open("rb") as file:
                    there = max(min(self._written, end), begin)
                    known, new = self._array[begin:there], self._array[there:end]
                    if not np.array_equal(_read(file, np.empty_like(known)).view("<u4"), known.view("<u4")):
                        return None
                    _read(file, new)
                self._written = max(self._written, end)
            found = self._array[:end]
            found.flags.writeable = False
            return found


def _read(file: BufferedReader, into: Matrix) -> Matrix:
    """Fill an array from a file, and return it. Raises DamagedError if the file is too short."""
    if into.size and file.readinto(into.data) != into.nbytes:
        raise DamagedError(f"{file.name} is too short: {REMEDY}")
    return into
