"""Linking pages to their counterparts in another language (the systems of BUCC 2015, and ours)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.crosslingual.methods import link
    from linker.crosslingual.runs import link_to_file
    from linker.crosslingual.task import LinkingResult, Options, Task, read_links

__all__ = ["LinkingResult", "Options", "Task", "link", "link_to_file", "read_links"]
__getattr__ = lazy(
    __name__,
    {
        "LinkingResult": "linker.crosslingual.task",
        "Options": "linker.crosslingual.task",
        "Task": "linker.crosslingual.task",
        "link": "linker.crosslingual.methods",
        "link_to_file": "linker.crosslingual.runs",
        "read_links": "linker.crosslingual.task",
    },
)
