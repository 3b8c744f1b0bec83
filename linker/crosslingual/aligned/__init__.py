"""Aligned passages of linked pages, exported for translators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.crosslingual.aligned.aligning import PageLink, align_pages
    from linker.crosslingual.aligned.writing import Writer

__all__ = ["PageLink", "Writer", "align_pages"]
__getattr__ = lazy(
    __name__,
    {
        "PageLink": "linker.crosslingual.aligned.aligning",
        "Writer": "linker.crosslingual.aligned.writing",
        "align_pages": "linker.crosslingual.aligned.aligning",
    },
)
