"""Shared by tests of distributed builds: builds with a fake encoder, and the content of an index on a cluster."""

import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest

from indexes.address import Address
from indexes.cluster import check, open_remote
from linker.engine import building
from linker.engine.intake import BuildReport
from tests.helpers import HashEncoder, sentence

OPTIONS = building.BuildOptions(encoder="hash", batch_size=32, commit_every=200)


def build(
    corpora: Sequence[Path],
    out: Path | str,
    encoder: HashEncoder | None,
    *,
    engine: Literal["local", "ray"],
    resume: bool = False,
    **changes: Any,
) -> BuildReport:
    """Build with or without an encoder, in this process or with Ray's workers."""

    def load(_name: str, **_: object) -> HashEncoder:
        assert encoder
        return encoder

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "load_encoder", load)
        name = "hash" if encoder else "none"
        options = dataclasses.replace(OPTIONS, encoder=name, engine=engine, **changes)
        return building.build(corpora, Path(out), options, resume=resume)


def content(where: str) -> dict[str, Any]:
    """Return everything a user can read from an index on a cluster, which must be complete."""
    address = Address.of(where)
    assert address
    collection = open_remote(address)
    rng = random.Random(1)
    texts = [sentence(rng, 4) for _ in range(5)]
    modes: tuple[Literal["bm25", "dense", "hybrid"], ...] = ("bm25", "dense", "hybrid")
    if collection.manifest.encoder is None:
        modes = ("bm25",)
    searched = {
        mode: [
            (hits.ids, hits.scores.tolist())
            for hits in collection.hybrid.search(texts, 10, embed=HashEncoder().encode, mode=mode).hits
        ]
        for mode in modes
    }
    lines = collection.index.client.search(
        index=f"{address.name}-quarantine", size=1000, ignore_unavailable=True
    )
    assert check(address).damage == []
    return {
        "documents": list(collection.matching()),
        "vectors": b"".join(v.tobytes() for v in collection.documents.vectors(16))
        if collection.manifest.encoder
        else b"",
        "searched": searched,
        "quarantine": sorted(
            (orjson.loads(hit["_source"]["record"]) for hit in lines["hits"]["hits"]),
            key=lambda record: (record["file"], record.get("record") or record["line"]),
        ),
        "counts": (collection.manifest.documents, collection.manifest.build),
    }
