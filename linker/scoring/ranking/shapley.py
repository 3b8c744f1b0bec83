"""The contribution of each feature to a forest's scores: Shapley values over the paths of the trees.

The value of a set of features is the tree's expectation if only they are known: at a split on another feature, each
side counts by its share of the training rows (TreeSHAP, "path-dependent": Lundberg et al., "From local explanations to
global understanding with explainable AI for trees", 2020). A leaf of value v, on whose path feature j has the share z_j
(the product of its splits' shares) and o_j = 1 where the row passes all of j's splits, else 0, gives feature j

    v · (o_j − z_j) · ∫₀¹ Π_{k ≠ j} (o_k · t + z_k · (1 − t)) dt,

since ∫ tˢ (1 − t)ᵈ⁻¹⁻ˢ dt is the weight of a coalition of s among d features. The integrand is a polynomial in t, for
which the Gauss–Legendre rule of enough nodes is exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from indexes.dtypes import AnyArray, Float64Array, Int64Array


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


class Part(NamedTuple):
    """A feature on the path to a leaf: the row passes where low < value ≤ high; `share` of the training rows do."""

    feature: int
    low: float
    high: float
    share: float


class Paths(NamedTuple):
    """All leaves of a forest with a path: `value` [leaves], and the start of each leaf's parts, `first` [leaves].

    The parts are arrays `feature`, `low`, `high`, `share`, and `leaf`, the leaf's index, all [parts]; `expected`
    is the mean score of the training rows.
    """

    value: Float64Array
    first: Int64Array
    leaf: Int64Array
    feature: Int64Array
    low: Float64Array
    high: Float64Array
    share: Float64Array
    expected: float


def paths_of(trees: Sequence[Tree]) -> Paths:
    """Return the paths of trees with known training rows per leaf."""
    found = [leaf for tree in trees for leaf in _leaves(tree)]
    sizes = np.array([len(parts) for _, parts, _ in found], dtype=np.int64)
    columns = np.array([part for _, parts, _ in found for part in parts], dtype=np.float64).reshape(-1, 4)
    inside = sizes > 0  # a tree of one leaf has no path
    values = np.array([value for value, _, _ in found])
    expected = float(sum(value * share for value, _, share in found))
    first = (np.cumsum(sizes) - sizes)[inside]
    leaf = np.repeat(np.arange(len(first)), sizes[inside])
    feature, low, high, share = columns.T
    return Paths(values[inside], first, leaf, feature.astype(np.int64), low, high, share, expected)


def _leaves(tree: Tree) -> Iterator[tuple[float, list[Part], float]]:
    """Yield the value of each leaf, the parts of its path, and its share of the training rows."""
    assert tree.count is not None
    rows = _rows_below(tree)
    waiting: list[tuple[int, dict[int, Part], float]] = [(0 if len(tree.feature) else -1, {}, 1.0)]
    while waiting:
        node, path, share = waiting.pop()
        if node < 0:
            yield float(tree.leaf[-1 - node]), list(path.values()), share
            continue
        feature, threshold = int(tree.feature[node]), float(tree.threshold[node])
        before = path.get(feature, Part(feature, -np.inf, np.inf, 1.0))
        for child, low, high in (
            (int(tree.left[node]), before.low, min(before.high, threshold)),
            (int(tree.right[node]), max(before.low, threshold), before.high),
        ):
            part = rows[child] / rows[node]
            waiting.append(
                (child, path | {feature: Part(feature, low, high, before.share * part)}, share * part)
            )


def _rows_below(tree: Tree) -> dict[int, int]:
    assert tree.count is not None
    rows = {-1 - leaf: int(count) for leaf, count in enumerate(tree.count)}
    for node in range(len(tree.feature) - 1, -1, -1):  # a split comes after its parent
        rows[node] = rows[int(tree.left[node])] + rows[int(tree.right[node])]
    return rows


def contributions(paths: Paths, x: AnyArray, features: int) -> Float64Array:
    """Return each feature's contribution to each score of `x` [n, f], the expected one last: float64 [n, f + 1]."""
    out = np.zeros((len(x), features + 1))
    out[:, -1] = paths.expected
    if not len(paths.value):
        return out
    most = int(np.bincount(paths.leaf).max())
    nodes, weights = np.polynomial.legendre.leggauss(-(-most // 2))  # exact up to degree most − 1
    value = paths.value[paths.leaf]
    for number, row in enumerate(np.asarray(x)):
        seen = row[paths.feature]
        passed = (seen > paths.low) & (seen <= paths.high)
        integral = np.zeros(len(passed))
        for node, weight in zip((1 + nodes) / 2, weights / 2, strict=True):
            factors = passed * node + paths.share * (1 - node)
            product = np.multiply.reduceat(factors, paths.first)
            integral += weight * product[paths.leaf] / factors
        moved = value * (passed - paths.share) * integral
        out[number, :-1] = np.bincount(paths.feature, moved, minlength=features)
    return out
