"""Indexes that live on a cluster, without a directory: the same collections, writers and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from indexes.remote.abilities import ABILITIES, Abilities, refused, vectors_of
    from indexes.remote.checking import check
    from indexes.remote.choosing import drop, manifest_of, size_of, writer_of
    from indexes.remote.collection import RemoteCollection, load, open_remote
    from indexes.remote.reads import NoMasterError
    from indexes.remote.rows import MOST
    from indexes.remote.writer import RemoteWriter

__all__ = [
    "ABILITIES",
    "MOST",
    "Abilities",
    "NoMasterError",
    "RemoteCollection",
    "RemoteWriter",
    "check",
    "drop",
    "load",
    "manifest_of",
    "open_remote",
    "refused",
    "size_of",
    "vectors_of",
    "writer_of",
]
__getattr__ = lazy(
    __name__,
    {
        "ABILITIES": "indexes.remote.abilities",
        "Abilities": "indexes.remote.abilities",
        "MOST": "indexes.remote.rows",
        "NoMasterError": "indexes.remote.reads",
        "RemoteCollection": "indexes.remote.collection",
        "RemoteWriter": "indexes.remote.writer",
        "check": "indexes.remote.checking",
        "drop": "indexes.remote.choosing",
        "manifest_of": "indexes.remote.choosing",
        "size_of": "indexes.remote.choosing",
        "writer_of": "indexes.remote.choosing",
        "load": "indexes.remote.collection",
        "open_remote": "indexes.remote.collection",
        "refused": "indexes.remote.abilities",
        "vectors_of": "indexes.remote.abilities",
    },
)
