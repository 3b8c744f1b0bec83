"""Pages in one language: their terms, and the surface features that translations share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.crosslingual.pages.languages import Language, language
    from linker.crosslingual.pages.pages import Pages, read_pages

__all__ = ["Language", "Pages", "language", "read_pages"]
__getattr__ = lazy(
    __name__,
    {
        "Language": "linker.crosslingual.pages.languages",
        "Pages": "linker.crosslingual.pages.pages",
        "language": "linker.crosslingual.pages.languages",
        "read_pages": "linker.crosslingual.pages.pages",
    },
)
