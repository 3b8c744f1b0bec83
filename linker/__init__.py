"""Find which posts belong to which articles (and the reverse), on a laptop.

The public names are imported on first use, so that `import linker` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy
from linker.version import __version__ as __version__

if TYPE_CHECKING:
    from indexes.hybrid import Answer
    from indexes.interface import Document, Filter, Hits
    from indexes.text.parameters import Bm25Parameters, Field
    from linker.building import BuildOptions, build, create
    from linker.commands import (
        Alignment,
        Links,
        Question,
        Triangles,
        Watched,
        align,
        calibrate,
        compare,
        find,
        link,
        train,
        triangulate,
        watch,
    )
    from linker.encoders.loading import load_encoder
    from linker.engine import Engine
    from linker.evaluation import evaluate
    from linker.review.session import FindReport
    from linker.tuning import Tuning

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
    "link",
    "load_encoder",
    "train",
    "triangulate",
    "watch",
]
__getattr__ = lazy(
    __name__,
    {
        "Alignment": "linker.commands.aligning",
        "Answer": "indexes.hybrid",
        "Bm25Parameters": "indexes.text.parameters",
        "BuildOptions": "linker.building",
        "Document": "indexes.interface",
        "Engine": "linker.engine",
        "Field": "indexes.text.parameters",
        "Filter": "indexes.interface",
        "FindReport": "linker.review.session",
        "Hits": "indexes.interface",
        "Links": "linker.commands.linking",
        "Question": "linker.commands.finding",
        "Triangles": "linker.commands.triangulating",
        "Tuning": "linker.tuning",
        "Watched": "linker.commands.watching",
        "align": "linker.commands.aligning",
        "build": "linker.building",
        "calibrate": "linker.commands.calibrating",
        "compare": "linker.commands.comparing",
        "create": "linker.building",
        "evaluate": "linker.evaluation",
        "find": "linker.commands.finding",
        "link": "linker.commands.linking",
        "load_encoder": "linker.encoders.loading",
        "train": "linker.commands.training",
        "triangulate": "linker.commands.triangulating",
        "watch": "linker.commands.watching",
    },
)
