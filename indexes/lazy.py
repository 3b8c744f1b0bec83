"""Names that a package exports but imports only on first use, so that importing the package loads nothing heavy."""

import ast
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

HIDDEN = ("__getattr__", "__dir__")


def lazy(package: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose `__all__` is imported on first use.

    The package's own imports for type checkers say where a name is defined, so this need not be repeated. `dir` and
    `help` also show the names; `help` imports them.
    """
    module = vars(sys.modules[package])

    @functools.cache
    def known() -> dict[str, str]:
        source = module["__spec__"].loader.get_source(package)
        imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
        return {alias.name: str(node.module) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name not in module["__all__"]:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(known()[name]), name)

    def names() -> list[str]:
        special = [name for name in module if name.startswith("__") and name not in HIDDEN]
        return sorted({*module["__all__"], *special})

    module["__dir__"] = names
    return get
