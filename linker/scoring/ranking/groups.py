"""Features of a candidate relative to its query's candidates: its distance to the best, its rank, the margin."""

from collections.abc import Sequence

import numpy as np

from indexes.dtypes import AnyArray, BoolArray, Float32Array
from indexes.text.features import OF_QUERY

PARTS = ("behind", "share", "rank", "margin")


def names_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the features that `with_group` returns for features with these names."""
    compared = [name for name in names if name not in OF_QUERY]
    return (*names, *(f"{part}.{name}" for part in PARTS for name in compared))


def with_group(features: Float32Array, valid: BoolArray, names: Sequence[str]) -> Float32Array:
    """Return the features of candidates (float32 [n, c, f]) and those that compare them, float32 [n, c, names_of].

    `valid` (bool [n, c]) marks candidates; the others are ignored, and their features are meaningless. For each feature
    that differs between the candidates of a query: its difference from the best, its position between the least and the
    best (0 to 1), the number of candidates with a larger value, and the lead of the best over the second.
    """
    columns = [i for i, name in enumerate(names) if name not in OF_QUERY]
    x = features[:, :, columns]
    here = valid[:, :, None]
    low = np.where(here, x, np.inf).min(axis=1, keepdims=True)
    masked = np.where(here, x, -np.inf)
    ordered = np.sort(masked, axis=1)
    best, second = ordered[:, -1:], ordered[:, -2:-1] if x.shape[1] > 1 else ordered[:, -1:]
    behind, spread = x - best, best - low
    share = (x - low) / np.maximum(spread, 1e-9)
    with np.errstate(invalid="ignore"):  # ∞ − ∞, if a query has no candidates
        margin = np.broadcast_to(np.where(np.isfinite(second), best - second, 0), x.shape)
        parts = [features, behind, share, _ranks(masked), margin]
        joined = np.concatenate(parts, axis=2).astype(np.float32)
    return np.asarray(np.nan_to_num(joined, nan=0, posinf=0, neginf=0))


def _ranks(values: AnyArray) -> Float32Array:
    """Return, for each value [n, c, f], how many values of its query are larger."""
    out = np.empty(values.shape, dtype=np.float32)
    for start in range(0, len(values), 256):
        part = values[start : start + 256]
        larger = part[:, :, None, :] > part[:, None, :, :]
        # Bytes summed along the first axis take half the time of booleans summed along the second.
        out[start : start + 256] = larger.view(np.uint8).sum(axis=1, dtype=np.uint16)
    return out
