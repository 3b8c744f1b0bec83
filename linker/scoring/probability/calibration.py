"""A fitted calibration: from features to P(link), the held-out links behind its promises, and its data source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import xxhash

from indexes.dtypes import BoolArray, Float64Array
from indexes.store.records import Manifest
from linker.base.errors import InputError
from linker.scoring.probability.promise import DELTA, Promise, promise


@dataclass(frozen=True)
class Source:
    """The source of a calibration: fingerprints of encoder, settings and data, and the number of documents."""

    encoder: str
    settings: str
    data: str
    documents: int
    generation: int

    @classmethod
    def of(cls, manifest: Manifest, *, encoder: bool = True) -> Source:
        """Return the source of an index; without `encoder`, as if it had no encoder."""
        return cls(
            manifest.encoder.fingerprint if encoder and manifest.encoder else "",
            _digest(_settings(manifest)),
            _digest(_data(manifest)),
            manifest.documents,
            manifest.generation,
        )


def _settings(manifest: Manifest) -> list[Any]:
    search = {key: manifest.search.get(key) for key in ("mode", "fusion")}
    return [manifest.analysis.to_json(), manifest.bm25.to_json(), search, bool(manifest.elastic)]


def _data(manifest: Manifest) -> Any:
    """Return a value that changes with the documents: their files' checksums or, on a server, their number."""
    checksums = sorted(r.xxh3 for name, r in manifest.files.items() if _is_data(name))
    return checksums or manifest.documents


def _is_data(name: str) -> bool:
    return name.startswith("deleted/") or (name.startswith("segments/") and name.endswith("documents.jsonl"))


def _digest(value: Any) -> str:
    return xxhash.xxh3_64_hexdigest(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


@dataclass(frozen=True, eq=False)
class Calibration:
    """A logistic regression on the features `names`, standardised by `centre` and `scale`; the offset is last.

    `held` and `right` [n]: P(link) of the first hits of held-out queries, and whether each of them is right. `seen`:
    the features of first hits, for comparison with future ones. `about` says how it was fitted.
    """

    names: tuple[str, ...]
    weights: Float64Array
    centre: Float64Array
    scale: Float64Array
    held: Float64Array
    right: BoolArray
    seen: Mapping[str, Float64Array]
    source: Source
    about: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""

    def probabilities(self, features: Float64Array) -> Float64Array:
        """Return P(link) [...] of features [..., names]."""
        from scipy.special import expit

        z = (features - self.centre) / self.scale
        return np.asarray(expit(z @ self.weights[:-1] + self.weights[-1]))

    def promise(self, precision: float, delta: float = DELTA) -> Promise | None:
        """Return the threshold that keeps a precision (see `promise.promise`), or None if none is certified."""
        return promise(self.held, self.right, precision, delta)

    def check(self, manifest: Manifest) -> None:
        """Raise InputError if the index's encoder or settings differ from those this was fitted on."""
        now = Source.of(manifest, encoder=bool(self.source.encoder))
        for name, before, after in (
            ("another encoder", self.source.encoder, now.encoder),
            ("another analysis, BM25 or search mode", self.source.settings, now.settings),
        ):
            if before != after:
                raise InputError(
                    f"the probabilities were fitted with {name} (fingerprint {before[:12] or 'none'}, now "
                    f"{after[:12] or 'none'}): calibrate this index again with `linker calibrate`"
                )

    def changed(self, manifest: Manifest) -> str:
        """Return how the documents have changed since the fit, or "" if they have not."""
        now = Source.of(manifest)
        if now.data == self.source.data:
            return ""
        return (
            f"the index has changed since the probabilities were fitted: {now.documents:,} documents, "
            f"{self.source.documents:,} then; calibrate it again if their kind has changed"
        )
