"""A regression tree as arrays."""

from __future__ import annotations

from dataclasses import dataclass

from indexes.dtypes import Float64Array, Int64Array


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree of n splits: `feature`, `left` and `right` (int64 [n]), `threshold` and `inner` (float64 [n]).

    A row goes left if its feature is at most the threshold. A child ≥ 0 is a split, after its parent; −1 − l is leaf
    l, whose value is leaf[l] (float64 [n + 1]); inner values are the mean of the subtree. `count` (int64 [n + 1]) is
    the number of training rows of each leaf; None in models from before linker stored it.
    """

    feature: Int64Array
    threshold: Float64Array
    left: Int64Array
    right: Int64Array
    inner: Float64Array
    leaf: Float64Array
    count: Int64Array | None = None
