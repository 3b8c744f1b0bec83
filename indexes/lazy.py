"""Names that a package hands out, imported on first use: importing a package then loads nothing heavy."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

HIDDEN = ("__getattr__", "__dir__")


def lazy(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names live in the modules that `homes` gives.

    `dir` and `help` show these names too; `help` imports them, `dir` does not.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    module = vars(sys.modules[package])

    def names() -> list[str]:
        special = [name for name in module if name.startswith("__") and name not in HIDDEN]
        return sorted({*homes, *special})

    module["__dir__"] = names
    return get
