"""Regression trees in LightGBM's text format: a strict reader, scores, and each feature's contribution.

LightGBM grows the trees, but is not needed to use them. Only numerical splits without missing values are supported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from indexes import kernels
from indexes.dtypes import AnyArray, Float64Array, Int64Array
from linker.base.errors import InputError
from linker.scoring.ranking import shapley
from linker.scoring.ranking.shapley import Paths, Tree, paths_of

MOST_BYTES = 16 << 20
MOST_TREES, MOST_LEAVES, MOST_FEATURES = 2000, 256, 1000
KEPT = (
    "num_leaves", "num_cat", "split_feature", "threshold", "decision_type", "left_child", "right_child", "leaf_value",
    "leaf_count", "internal_value", "is_linear", "shrinkage",
)  # fmt: skip
NODES = ("split_feature", "threshold", "decision_type", "left_child", "right_child", "internal_value")
HEAD = (
    "version",
    "num_class",
    "num_tree_per_iteration",
    "label_index",
    "max_feature_idx",
    "objective",
    "feature_names",
)
NAME = re.compile(r"[a-z0-9_.]{1,60}")
BLOCK = 1 << 16  # number of rows × number of trees scored at a time
MOST_ROWS = 1 << 40  # maximum number of training rows of a leaf


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees whose values are added; `names` are those of the features."""

    names: tuple[str, ...]
    trees: tuple[Tree, ...]

    @classmethod
    def read(cls, text: str, where: object = "the model") -> Forest:
        """Return the trees in LightGBM's text. Raises InputError, naming `where`, if a value is implausible."""
        try:
            return cls._read(text)
        except (ValueError, KeyError, OverflowError) as e:
            raise InputError(
                f"{where} does not hold trees of this version: {e}; copy it again, or train it again"
            ) from None

    @classmethod
    def _read(cls, text: str) -> Forest:
        _require(len(text) <= MOST_BYTES, f"more than {MOST_BYTES:,} bytes")
        head, *blocks = text.partition("end of trees")[0].split("\nTree=")
        _require(len(blocks) <= MOST_TREES, f"more than {MOST_TREES} trees")
        values = dict(_pairs(head.splitlines()))
        names = tuple(values["feature_names"].split())
        _require(
            0 < len(names) <= MOST_FEATURES and len(set(names)) == len(names),
            "names of features are repeated",
        )
        _require(
            all(NAME.fullmatch(name) for name in names),
            "a feature's name has characters other than a-z, 0-9, _, .",
        )
        for key, expected in (
            ("num_class", "1"),
            ("num_tree_per_iteration", "1"),
            ("max_feature_idx", str(len(names) - 1)),
        ):
            _require(values.get(key) == expected, f"{key} is not {expected}")
        return cls(names, tuple(_tree(dict(_pairs(block.splitlines())), len(names)) for block in blocks))

    @cached_property
    def _table(self) -> tuple[AnyArray, ...]:
        """All splits and leaves in one table, in which a leaf is its own child, and the first node of each tree."""
        sizes = np.array([len(t.feature) + len(t.leaf) for t in self.trees], dtype=np.int64)
        roots = np.cumsum(sizes) - sizes
        parts: list[list[AnyArray]] = [[], [], [], [], []]
        for root, tree in zip(roots.tolist(), self.trees, strict=True):
            splits, own = len(tree.feature), root + np.arange(len(tree.feature) + len(tree.leaf))
            children = [root + np.where(c >= 0, c, splits - 1 - c) for c in (tree.left, tree.right)]
            rows = (
                np.pad(tree.feature, (0, len(tree.leaf))),
                np.pad(tree.threshold, (0, len(tree.leaf))),
                np.concatenate([children[0], own[splits:]]),
                np.concatenate([children[1], own[splits:]]),
                np.concatenate([tree.inner, tree.leaf]),
            )
            for part, array in zip(parts, rows, strict=True):
                part.append(array)
        return (roots, *(np.concatenate(part) if part else np.empty(0) for part in parts))

    def _steps(self, x: AnyArray) -> Iterator[tuple[AnyArray, AnyArray]]:
        roots, feature, threshold, left, right, _ = self._table
        node = np.broadcast_to(roots, (len(x), len(roots)))
        row = np.arange(len(x))[:, None]
        while True:
            below = np.where(x[row, feature[node]] <= threshold[node], left[node], right[node])
            if (below == node).all():
                return
            yield node, below
            node = below

    def scores(self, x: AnyArray) -> Float64Array:
        """Return the score of each row of `x` (float32 [n, features]), float64 [n]."""
        out = np.zeros(len(x))
        if not self.trees:
            return out
        x = np.ascontiguousarray(x, dtype=np.float32)
        if x.ndim != 2 or x.shape[1] != len(self.names):
            raise ValueError(f"features have shape {x.shape}, expected [n, {len(self.names)}]")
        library = kernels.load("features")
        if library is None:
            return self._plain_scores(x)
        kernels.call(library.forest, x, *x.shape, self._table[0], len(self.trees), *self._table[1:], out)
        return out

    def _plain_scores(self, x: AnyArray) -> Float64Array:
        """Return the same scores as the compiled loop; leaf values are added in the same order."""
        out = np.zeros(len(x))
        step, value = max(1, BLOCK // len(self.trees)), self._table[-1]
        for start in range(0, len(x), step):
            last = np.broadcast_to(self._table[0], (len(x[start : start + step]), len(self.trees)))
            for _, below in self._steps(x[start : start + step]):
                last = below
            out[start : start + step] = value[last].cumsum(axis=1)[:, -1]
        return out

    @cached_property
    def _paths(self) -> Paths | None:
        return None if any(tree.count is None for tree in self.trees) else paths_of(self.trees)

    def contributions(self, x: AnyArray) -> Float64Array:
        """Return float64 [n, features + 1]: how much each feature moved each row's score, and the base value last.

        These are Shapley values (`linker.scoring.ranking.shapley`), like LightGBM's `pred_contrib`; a row sums to its
        score. They need the counts of each tree's nodes. In a tree without counts, each split on a row's path
        contributes the difference between its child's mean and its own (Saabas, 2014).
        """
        if self._paths is not None:
            return shapley.contributions(self._paths, x, len(self.names))
        out = np.zeros((len(x), len(self.names) + 1))
        if self.trees:
            roots, feature, *_, value = self._table
            out[:, -1] = value[roots].sum()
            rows = np.repeat(np.arange(len(x)), len(roots))
            for node, below in self._steps(x):
                np.add.at(out, (rows, feature[node].ravel()), (value[below] - value[node]).ravel())
        return out


def compact(text: str, digits: int = 6) -> str:
    """Return a model's text with only what scoring needs, values rounded to `digits`; LightGBM can read it, too."""
    head, *blocks = text.partition("end of trees")[0].split("\nTree=")
    values = dict(_pairs(head.splitlines()))
    lines = [
        "tree",
        *(f"{key}={values[key]}" for key in HEAD),
        f"feature_infos={values['feature_infos']}",
        "",
    ]
    for number, block in enumerate(blocks):
        tree = dict(_pairs(block.splitlines()))
        for key in ("leaf_value", "internal_value", "threshold"):
            # Thresholds lie between two float32 values, so they need more digits.
            size = 9 if key == "threshold" else digits
            if key in tree:
                tree[key] = " ".join(f"{float(v):.{size}g}" for v in tree[key].split())
        lines += [f"Tree={number}", *(f"{key}={tree[key]}" for key in KEPT if key in tree), "", ""]
    return "\n".join([*lines, "end of trees", ""])


def _pairs(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        key, equals, value = line.partition("=")
        if equals:
            yield key, value


def _tree(values: Mapping[str, str], features: int) -> Tree:
    leaves = int(values["num_leaves"])
    _require(1 <= leaves <= MOST_LEAVES, f"a tree of {leaves} leaves")
    _require(
        values.get("num_cat", "0") == "0" and values.get("is_linear", "0") == "0", "a tree of another kind"
    )
    parts = {key: values.get(key, "").split() if leaves > 1 else [] for key in NODES}
    _require(all(len(part) == leaves - 1 for part in parts.values()), "a tree of uneven size")
    feature, kind, left, right = (
        np.array([int(v) for v in parts[key]], dtype=np.int64)
        for key in ("split_feature", "decision_type", "left_child", "right_child")
    )
    threshold, inner = (np.array([float(v) for v in parts[key]]) for key in ("threshold", "internal_value"))
    leaf = np.array([float(v) for v in values["leaf_value"].split()])
    _require(len(leaf) == leaves, "a tree of uneven size")
    _require(all(np.isfinite(a).all() for a in (threshold, inner, leaf)), "a number that is not finite")
    count = _counts(values, leaves)
    # Bit 0: a split by category; bit 1: the side to which missing values go; other bits: which values are missing.
    _require(bool(np.isin(kind, (0, 2)).all()), "a split of another kind")
    _require(bool(((feature >= 0) & (feature < features)).all()), "a split on a feature that does not exist")
    children = np.concatenate([left, right])
    parents = np.tile(np.arange(leaves - 1), 2)
    # Every split except the first, and every leaf, is the child of exactly one split, which precedes it.
    once = np.sort(children).tolist() == [*range(-leaves, 0), *range(1, leaves - 1)]
    _require(
        leaves == 1 or (once and bool((children[children >= 0] > parents[children >= 0]).all())),
        "a tree with a loop",
    )
    return Tree(feature, threshold, left, right, inner, leaf, count)


def _counts(values: Mapping[str, str], leaves: int) -> Int64Array | None:
    """Return the training rows of each leaf, int64 [leaves], or None if the model does not record them."""
    if not values.get("leaf_count", "").strip():
        return np.ones(1, dtype=np.int64) if leaves == 1 else None
    count = np.array([int(v) for v in values["leaf_count"].split()], dtype=np.int64)
    _require(len(count) == leaves, "a tree of uneven size")
    _require(
        bool((count > 0).all()) and int(count.max()) < MOST_ROWS, "a leaf without rows, or with too many"
    )
    return count


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
