"""The commands as functions of the same names: `link`, `find`, `watch`, `train`, `calibrate`, `compare` and others.

Remarks go to the logger `linker`. Where work takes a while, `progress` is called with what is done, how much of it is
done, and of how much (None: unknown).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.commands.aligning import Alignment, align
    from linker.commands.calibrating import calibrate
    from linker.commands.comparing import compare
    from linker.commands.finding import Question, find
    from linker.commands.inducing import LearnedDictionary, learn_dictionary
    from linker.commands.linking import Links, link
    from linker.commands.training import train
    from linker.commands.triangulating import Triangles, triangulate
    from linker.commands.watching import Watched, watch

__all__ = [
    "Alignment",
    "LearnedDictionary",
    "Links",
    "Question",
    "Triangles",
    "Watched",
    "align",
    "calibrate",
    "compare",
    "find",
    "learn_dictionary",
    "link",
    "train",
    "triangulate",
    "watch",
]
__getattr__ = lazy(
    __name__,
    {
        "Alignment": "linker.commands.aligning",
        "LearnedDictionary": "linker.commands.inducing",
        "Links": "linker.commands.linking",
        "Question": "linker.commands.finding",
        "Triangles": "linker.commands.triangulating",
        "Watched": "linker.commands.watching",
        "align": "linker.commands.aligning",
        "calibrate": "linker.commands.calibrating",
        "compare": "linker.commands.comparing",
        "find": "linker.commands.finding",
        "learn_dictionary": "linker.commands.inducing",
        "link": "linker.commands.linking",
        "train": "linker.commands.training",
        "triangulate": "linker.commands.triangulating",
        "watch": "linker.commands.watching",
    },
)
