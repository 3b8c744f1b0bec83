"""Check whether directories can be searched as one index, and derive that index's manifest."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from indexes.interface import EncoderMismatchError, IndexesError
from indexes.store.records import Manifest

Named = tuple[Path, Manifest]
# Settings chosen by `index tune`: all scores of a result must come from the same settings.
TUNED = ("mode", "fusion")
# Settings used only if all shards store the same value, and the remedy if they do not.
SHARED = {"ranker": "use `rerank`", "lexicon": "store it in each of them"}


def check(shards: Sequence[Named]) -> None:
    """Raise the errors of `check_alike`, and IndexesError if an index is on a server."""
    for directory, manifest in shards:
        if manifest.elastic:
            raise IndexesError(
                f"{directory} is on Elasticsearch, whose indexes have shards of their own: build it there with "
                "`shards`, and search it alone"
            )
    check_alike(shards)


def check_alike(shards: Sequence[Named]) -> None:
    """Raise IndexesError (EncoderMismatchError for vectors) if the scores of two directories cannot be compared."""
    (first, one), *others = shards
    for directory, other in others:
        together = f"{first} and {directory} cannot be searched together"
        if one.analysis != other.analysis:
            raise IndexesError(
                f"{together}: their texts are analysed in different ways ({one.analysis.language} and "
                f"{other.analysis.language}, or other settings): rebuild one as the other was built"
            )
        if [f.name for f in one.bm25.fields] != [f.name for f in other.bm25.fields]:
            raise IndexesError(
                f"{together}: their fields of BM25 differ: rebuild one with the `fields` of the other"
            )
        if _encoder(one) != _encoder(other):
            raise EncoderMismatchError(
                f"{together}: their vectors are from different encoders, {_described(one)} and {_described(other)}: "
                "rebuild one with the other's encoder"
            )


def _encoder(manifest: Manifest) -> tuple[str, int] | None:
    return (manifest.encoder.fingerprint, manifest.encoder.dim) if manifest.encoder else None


def _described(manifest: Manifest) -> str:
    record = manifest.encoder
    if record is None:
        return "no encoder"
    if not manifest.embeds:
        return f"an unknown one ({record.dim} dimensions)"
    return f"{record.name} (fingerprint {record.fingerprint[:12]}, {record.dim} dimensions)"


def joint(shards: Sequence[Named]) -> tuple[Manifest, tuple[str, ...]]:
    """Return the manifest of all shards as one index, and remarks on settings that are left out.

    Settings come from the first shard. A ranker and a lexicon are used if all shards store the same; a calibration is
    never used, since it was fitted to the scores of one shard. The generation is the sum of the shards' generations, so
    any commit changes it.
    """
    (first, one), *others = shards
    remarks = []
    unlike = [str(d) for d, m in others if _tuned(m) != _tuned(one)]
    if unlike:
        remarks.append(
            f"mode, fusion and BM25's parameters are those of {first}: {', '.join(unlike)} was tuned differently"
        )
    search = {key: value for key, value in one.search.items() if key not in (*SHARED, "calibration")}
    for kind, advice in SHARED.items():
        stored = {m.search.get(kind) for _, m in shards}
        if len(stored) == 1 and None not in stored:
            search[kind] = one.search[kind]
        elif stored != {None}:
            remarks.append(
                f"the stored {kind} is not used, since not all directories store the same: {advice}"
            )
    if any(m.search.get("calibration") for _, m in shards):
        remarks.append("no P(link): a calibration is valid only for the directory that it was fitted on")
    manifest = dataclasses.replace(
        one,
        positions=all(m.positions for _, m in shards),
        generation=sum(m.generation for _, m in shards),
        documents=sum(m.documents for _, m in shards),
        quarantined=sum(m.quarantined for _, m in shards),
        segments=(),
        files={},
        search=search,
    )
    return manifest, tuple(remarks)


def _tuned(manifest: Manifest) -> list[Any]:
    return [manifest.bm25, *(manifest.search.get(key) for key in TUNED)]
