"""Find which posts belong to which articles (and the reverse), on a laptop.

The public names are imported on first use, so that `import linker` is fast.
"""

from typing import TYPE_CHECKING

from indexes.lazy import lazy
from linker.base.version import __version__ as __version__

if TYPE_CHECKING:
    from indexes.hybrid import Answer
    from indexes.interface import Document, Filter, Hits
    from indexes.text.parameters import Bm25Parameters, Field
    from linker.cli.commands.aligning import Alignment, align
    from linker.cli.commands.calibrating import calibrate
    from linker.cli.commands.finding import find
    from linker.cli.commands.grouping import group
    from linker.cli.commands.linking import link
    from linker.cli.commands.training import train
    from linker.cli.commands.triangulating import Triangles, triangulate
    from linker.cli.commands.watching import Watched, watch
    from linker.crosslingual.linking import Links
    from linker.encoders.loading import load_encoder
    from linker.engine.building import BuildOptions, build, create
    from linker.engine.engine import Engine
    from linker.engine.groups import Groups
    from linker.engine.tuning import Tuning
    from linker.evaluation import evaluate
    from linker.evaluation.comparison import compare
    from linker.review.options import Question
    from linker.review.session import FindReport

__all__ = [
    "Alignment",
    "Answer",
    "Bm25Parameters",
    "BuildOptions",
    "Document",
    "Engine",
    "Field",
    "Filter",
    "FindReport",
    "Groups",
    "Hits",
    "Links",
    "Question",
    "Triangles",
    "Tuning",
    "Watched",
    "align",
    "build",
    "calibrate",
    "compare",
    "create",
    "evaluate",
    "find",
    "group",
    "link",
    "load_encoder",
    "train",
    "triangulate",
    "watch",
]
__getattr__ = lazy(__name__)
