"""The store: documents, the manifest of each committed generation, the files that an index owns, and backups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from indexes.store.documents import DocumentStore
    from indexes.store.files import load_checked, write_lock
    from indexes.store.records import Manifest

__all__ = ["DocumentStore", "Manifest", "load_checked", "write_lock"]
__getattr__ = lazy(
    __name__,
    {
        "DocumentStore": "indexes.store.documents",
        "Manifest": "indexes.store.records",
        "load_checked": "indexes.store.files",
        "write_lock": "indexes.store.files",
    },
)
