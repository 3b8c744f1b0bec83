"""Whether an interrupted build can be continued with what is requested now."""

from __future__ import annotations

from pathlib import Path

from indexes.interface import IndexesError
from indexes.store.records import Manifest


def check_same_build(existing: Manifest, requested: Manifest, out: Path | str) -> None:
    """Raise IndexesError unless the build that `existing` records, of the index `out`, is the one that is requested."""
    if existing.build.sources != requested.build.sources:
        raise IndexesError(
            f"{out} was being built from {[p for p, _ in existing.build.sources]} "
            "and these files are not the same now: "
            "give the same corpora in the same order, or build into another directory"
        )
    same_encoder = (existing.encoder and existing.encoder.fingerprint) == (
        requested.encoder and requested.encoder.fingerprint
    )
    for what, equal in (
        ("`encoder`", same_encoder),
        ("`vectors`", existing.vectors == requested.vectors),
        ("`language`", existing.analysis.language == requested.analysis.language),
        ("`tokenizer`, `stop_words` or `min_token`", existing.analysis == requested.analysis),
        ("`positions`", existing.positions == requested.positions),
        ("`k1`, `b`, `k3` or `fields`", existing.bm25 == requested.bm25),
        ("`backend`", bool(existing.elastic) == bool(requested.elastic)),
    ):
        if not equal:
            raise IndexesError(f"{out} was being built with another {what}: give the same one to continue")
