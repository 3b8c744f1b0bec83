"""Find which posts belong to which articles (and the reverse), on a laptop.

The public names are imported on first use, so that `import linker` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

__version__ = "0.2.0"

if TYPE_CHECKING:
    from indexes.interface import Document, Filter, Hits
    from indexes.text.parameters import Bm25Parameters, Field
    from linker.building import BuildOptions, build, create
    from linker.encoders.loading import load_encoder
    from linker.engine import Engine
    from linker.evaluation import evaluate

__all__ = [
    "Bm25Parameters",
    "BuildOptions",
    "Document",
    "Engine",
    "Field",
    "Filter",
    "Hits",
    "build",
    "create",
    "evaluate",
    "load_encoder",
]
__getattr__ = lazy(
    __name__,
    {
        "Bm25Parameters": "indexes.text.parameters",
        "BuildOptions": "linker.building",
        "Document": "indexes.interface",
        "Engine": "linker.engine",
        "Field": "indexes.text.parameters",
        "Filter": "indexes.interface",
        "Hits": "indexes.interface",
        "build": "linker.building",
        "create": "linker.building",
        "evaluate": "linker.evaluation",
        "load_encoder": "linker.encoders.loading",
    },
)
