"""Deleting a collection: what it has on a server first, then its manifest, then its other files."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from indexes.disk import writing
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store import ownership
from indexes.store.records import Manifest


def drop(directory: Path) -> Manifest:
    """Delete a collection, and its directory if nothing else lies there; return what it was.

    Raises IndexesError where there is none, LockedError, and BackendUnavailableError (nothing is deleted then) when
    a part of it is on a server that does not answer. What an interrupted drop leaves is no index: one may be built
    there, which sweeps it, or the directory deleted.
    """
    with storage.disk_errors(f"deleting {directory}"):
        manifests.load(directory)
        with storage.write_lock(directory):
            manifest = manifests.load(directory)
            if not os.access(directory, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(directory))
            if manifest.elastic:
                _drop_on_server(manifest)
            ownership.refuse_links(directory)
            # should the deletion end half-way, these are still known as ours
            ownership.mark(directory, [name for name in manifest.files if ownership.is_encoder_file(name)])
            # first of all: without its manifest there is no index, with it but without a file a damaged one
            (directory / manifests.NAME).unlink()
            writing.sync(directory)
            ownership.sweep(directory, ())
            (directory / storage.LOCK).unlink()
        with contextlib.suppress(OSError):  # not empty
            directory.rmdir()
    return manifest


def _drop_on_server(manifest: Manifest) -> None:
    from indexes.elastic.client import ElasticSettings
    from indexes.elastic.server_index import ElasticStore

    store = ElasticStore(ElasticSettings.from_json(manifest.elastic))
    try:
        store.drop(numberings=True)
        store.drop()
    finally:
        store.close()
