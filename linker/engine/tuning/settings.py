"""The ways to search that `linker index tune` compares."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from indexes.fusion import Fusion, Method
from indexes.hybrid import Mode
from indexes.text.parameters import Bm25Parameters

WEIGHTS = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9)  # weights of the dense retriever, plainest first
COSINE_WEIGHTS = (1.0, 0.5, 1.5, 2.0, 0.25, 0.75, 2.5, 3.0)  # weights of a cosine added to BM25 / its maximum


@dataclass(frozen=True, slots=True)
class Setting:
    """A way to search: the mode, the fusion (for a hybrid), and BM25's parameters (None: the index's)."""

    mode: Mode
    fusion: Fusion | None = None
    bm25: Bm25Parameters | None = None

    def __str__(self) -> str:
        changed = "" if self.bm25 is None else _shown(self.bm25)
        if self.fusion is None:
            return f"{self.mode} alone{changed}"
        weights = ":".join(f"{w:g}" for w in self.fusion.weights)
        rank = f" k={self.fusion.k}" if self.fusion.method == "rrf" else ""
        return f"{self.mode} {self.fusion.method} {weights}{rank}{changed}"


def _shown(bm25: Bm25Parameters) -> str:
    weights = "".join(f" {field.name}={field.weight:g}" for field in bm25.fields)
    return f" k1={bm25.k1:g} b={bm25.b:g} k3={bm25.k3:g}{weights}"


@dataclass(frozen=True, slots=True)
class SearchSetting:
    """A way to search, with its mean value by measure."""

    mode: Mode
    fusion: Fusion | None
    means: Mapping[str, float]
    bm25: Bm25Parameters | None = None

    def __str__(self) -> str:
        return str(Setting(self.mode, self.fusion, self.bm25))

    def to_json(self) -> dict[str, Any]:
        """Return the setting and its means as values for JSON."""
        fusion = self.fusion.to_json() if self.fusion else None
        bm25 = self.bm25.to_json() if self.bm25 else None
        return {"mode": self.mode, "fusion": fusion, "bm25": bm25, **self.means}


def fusions() -> list[Fusion]:
    """Return the hybrids to try, the plainest first."""
    methods: list[tuple[Method, int]] = [
        ("rrf", 60),
        ("rrf", 10),
        ("max", 60),
        ("minmax", 60),
        ("zscore", 60),
    ]
    shared = [Fusion(method, (round(1 - w, 1), w), k) for method, k in methods for w in WEIGHTS]
    return shared + [Fusion("cosine", (1.0, w)) for w in COSINE_WEIGHTS]


def candidates(*, bm25: bool, dense: bool) -> list[Setting]:
    """Return the possible settings of an index with these retrievers, its untuned default first."""
    alone: list[Setting] = [Setting("bm25")] * bm25 + [Setting("dense")] * dense
    if not (bm25 and dense):
        return alone
    default = Fusion()
    return [Setting("hybrid", f) for f in [default, *(f for f in fusions() if f != default)]] + alone


def with_parameters(settings: Sequence[Setting], bm25: Bm25Parameters | None) -> list[Setting]:
    """Return the first setting unchanged, then all with these BM25 parameters; with None, return all unchanged."""
    if bm25 is None:
        return list(settings)
    changed = [s if s.mode == "dense" else dataclasses.replace(s, bm25=bm25) for s in settings]
    return [settings[0], *(s for s in changed if s != settings[0])]
