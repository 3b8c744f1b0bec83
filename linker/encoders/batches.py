"""Texts as token ids, grouped into batches of similar length."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from linker.encoders.tokens import PAD

BATCH_TOKENS = 1 << 14  # positions per batch, padding included: bounds the memory that long texts need


def filled(
    ids: Sequence[Sequence[int]], least: int = 0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return ids padded to the longest text, or to `least`, and their mask (True: a token), both [n, length]."""
    lengths = np.array([len(text) for text in ids], dtype=np.int64)
    mask = np.arange(lengths.max(initial=least)) < lengths[:, None]
    padded = np.full(mask.shape, PAD, dtype=np.int64)
    padded[mask] = [token for text in ids for token in text]
    return padded, mask


def by_length(ids: Sequence[Sequence[int]], batch_size: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the row numbers of each batch: at most `batch_size`, fewer if the texts are long."""
    lengths = np.array([len(text) for text in ids], dtype=np.int64)
    order = np.argsort(lengths, kind="stable")[::-1]  # the longest first, so that memory peaks at the start
    start = 0
    while start < len(order):
        size = min(batch_size, max(1, BATCH_TOKENS // max(1, int(lengths[order[start]]))))
        yield order[start : start + size]
        start += size
