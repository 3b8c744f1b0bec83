"""The request for a build: the manifest of the future index, and checks for options that contradict it."""

from __future__ import annotations

from pathlib import Path

from indexes.address import Address
from indexes.cluster import refused, vectors_of
from indexes.cluster.client import ElasticSettings
from indexes.interface import IndexesError
from indexes.store.records import BuildRecord, EncoderRecord, Manifest
from indexes.text.parameters import Bm25Parameters
from linker.base.errors import InputError
from linker.corpora.vectors import GivenVectors
from linker.encoders.interface import Encoder
from linker.encoders.opened import name_for
from linker.engine.options import BuildOptions


def requested_manifest(
    options: BuildOptions,
    out: Path,
    encoder: Encoder | None,
    build: BuildRecord,
    given: GivenVectors | None = None,
) -> Manifest:
    """Return the manifest of an index to be built. Raises InputError or IndexesError for contradicting options."""
    name = name_for(out, str(options.encoder))
    record = EncoderRecord(name, encoder.fingerprint, encoder.dim) if encoder else None
    if given and record is None:
        record = EncoderRecord(name, "", given.dim)
    if given and record and record.dim != given.dim:
        raise InputError(
            f"{given.path} has vectors of {given.dim} dimensions, and `encoder` {name} makes {record.dim}: name the "
            "encoder that made them, or none"
        )
    vectors = options.vectors if record else "none"
    elastic = options.elastic.to_json() if options.elastic else {}
    if address := Address.of(out):
        if options.keep:
            raise refused(address, "`keep`")
        vectors = vectors_of(address, vectors)
        elastic = (options.elastic or ElasticSettings.of(address)).to_json()
    return Manifest(
        vectors=vectors,
        analysis=options.analysis,
        bm25=options.bm25 or Bm25Parameters(),
        positions=options.positions,
        encoder=record,
        build=build,
        elastic=elastic,
    )


def check_same_build(existing: Manifest, requested: Manifest, out: Path | str) -> None:
    """Raise IndexesError unless `existing`, the manifest of the index `out`, records the requested build."""
    if existing.build.sources != requested.build.sources:
        raise IndexesError(
            f"{out} was being built from {[p for p, _ in existing.build.sources]} "
            "and these files have changed since: "
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
