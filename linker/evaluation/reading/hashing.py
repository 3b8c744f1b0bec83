"""A hash table of 64-bit keys in arrays, built and searched a whole column at a time."""

import numpy as np
import numpy.typing as npt

from indexes.dtypes import Int64Array
from linker.evaluation.reading.fields import Words

_MIX = np.uint64(0x9E3779B97F4A7C15)


class HashTable:
    """A map from `keys`, uint64 [n], to rows; `repeated`, int64: rows whose key `find` maps to another row.

    In each round, every key writes its row into a slot; rows that were overwritten go into the next, smaller round.
    """

    def __init__(self, keys: Words) -> None:
        self._keys = keys
        self._rounds: list[npt.NDArray[np.int32]] = []
        rows = np.arange(len(keys), dtype=np.int32)
        repeated: list[npt.NDArray[np.int32]] = []
        while len(rows):
            table = np.full(1 << (2 * len(rows)).bit_length(), -1, np.int32)
            slot = _slots(keys[rows], len(table), len(self._rounds))
            table[slot] = rows
            winner = table[slot]
            beaten = winner != rows
            self._rounds.append(table)
            rows, winner = rows[beaten], winner[beaten]
            same = keys[rows] == keys[winner]
            repeated.append(rows[same])
            rows = rows[~same]
        self.repeated: Int64Array = np.concatenate([*repeated, rows]).astype(np.int64)

    def find(self, keys: Words) -> Int64Array:
        """Return the row of each key, int64 [m], for `keys`, uint64 [m]; −1 for a key that is not in the table."""
        result = np.full(len(keys), -1, np.int64)
        pending = np.arange(len(keys))
        for number, table in enumerate(self._rounds):
            row = table[_slots(keys[pending], len(table), number)]
            hit = (self._keys[row] == keys[pending]) & (row >= 0)
            result[pending[hit]] = row[hit]
            pending = pending[(row >= 0) & ~hit]  # an empty slot: the key is absent
        return result


def _slots(keys: Words, size: int, number: int) -> Int64Array:
    """Return slots: the upper bits of a product, with a different odd factor in every round."""
    factor = _MIX + np.uint64(2 * number)
    return ((keys * factor) >> np.uint64(65 - size.bit_length())).astype(np.int64)
