"""Bilingual lexicons: read from dictionaries, or induced from linked pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.crosslingual.lexicon.dictionaries import Dictionary, read_dictionary
    from linker.crosslingual.lexicon.induction import induce
    from linker.crosslingual.lexicon.lexicon import Lexicon

__all__ = ["Dictionary", "Lexicon", "induce", "read_dictionary"]
__getattr__ = lazy(
    __name__,
    {
        "Dictionary": "linker.crosslingual.lexicon.dictionaries",
        "Lexicon": "linker.crosslingual.lexicon.lexicon",
        "induce": "linker.crosslingual.lexicon.induction",
        "read_dictionary": "linker.crosslingual.lexicon.dictionaries",
    },
)
