"""Deletes a collection: its part on a server first, then its manifest, then its other files."""

import contextlib
import errno
import os
from pathlib import Path

from indexes.disk import writing
from indexes.interface import IndexesError
from indexes.store import files as storage
from indexes.store import manifest as manifests
from indexes.store import ownership
from indexes.store.records import Manifest


def drop(directory: Path) -> Manifest:
    """Delete a collection, and its directory if nothing else is in it; return its last manifest.

    Raises IndexesError if there is none, LockedError if another process is writing to it, and BackendUnavailableError
    (nothing is deleted then) if a part of it is on a server that does not answer. An interrupted drop leaves no
    index: delete the directory, or build a new index there, which removes the leftovers.
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
            # If the deletion stops halfway, these files are still known to be ours.
            ownership.mark(directory, [name for name in manifest.files if ownership.is_encoder_file(name)])
            # The manifest goes first: if it were left without another file, the index would count as damaged.
            (directory / manifests.NAME).unlink()
            writing.sync(directory)
            ownership.sweep(directory, ())
            (directory / storage.LOCK).unlink()
        with contextlib.suppress(OSError):  # not empty
            directory.rmdir()
    return manifest


def discard(directory: Path) -> None:
    """Delete a collection, or what a killed build left behind, but no other files. Raises the errors of `drop`."""
    if (directory / manifests.NAME).exists():
        drop(directory)
    elif directory.exists():
        with storage.disk_errors(f"deleting {directory}"):
            if any(directory.iterdir()):
                if not ownership.is_marked(directory):
                    raise IndexesError(f"{directory} was not made by linker: delete it yourself")
                with storage.write_lock(directory):
                    ownership.refuse_links(directory)
                    ownership.sweep(directory, ())
                    (directory / storage.LOCK).unlink()
            with contextlib.suppress(OSError):  # not empty
                directory.rmdir()


def _drop_on_server(manifest: Manifest) -> None:
    from indexes.cluster import ClusterIndex, ElasticSettings

    with contextlib.closing(ClusterIndex(ElasticSettings.from_json(manifest.elastic))) as index:
        index.drop(numberings=True)
        index.drop()
