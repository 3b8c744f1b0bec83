"""The commands as functions of the same names: `link`, `group`, `find`, `watch`, `train`, `compare` and others.

Notes go to the logger `linker`. If work takes a while, `progress` is called with the step, the amount done, and the
total (None: unknown).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.cli.commands.aligning import Alignment, align
    from linker.cli.commands.calibrating import calibrate
    from linker.cli.commands.finding import find
    from linker.cli.commands.grouping import group
    from linker.cli.commands.linking import link
    from linker.cli.commands.training import train
    from linker.cli.commands.triangulating import Triangles, triangulate
    from linker.cli.commands.watching import Watched, watch
    from linker.crosslingual.inducing import LearnedDictionary, learn_dictionary
    from linker.crosslingual.linking import Links
    from linker.evaluation.comparison import compare
    from linker.review.options import Question

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
    "group",
    "learn_dictionary",
    "link",
    "train",
    "triangulate",
    "watch",
]
__getattr__ = lazy(__name__)
