"""Files: read as untrusted data, written so that they survive a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from indexes.disk.reading import open_inside
    from indexes.disk.writing import DurableFile, FileRecord, write_durably

__all__ = ["DurableFile", "FileRecord", "open_inside", "write_durably"]
__getattr__ = lazy(
    __name__,
    {
        "DurableFile": "indexes.disk.writing",
        "FileRecord": "indexes.disk.writing",
        "open_inside": "indexes.disk.reading",
        "write_durably": "indexes.disk.writing",
    },
)
