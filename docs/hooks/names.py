"""The reference of Python, made from the public names of `linker` and of the rooms that programs use."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any, get_type_hints

import linker

TITLE = """# Python

`import linker` gives these names, on first use, so that the import itself is fast. [Python by example](../api.md) shows
how they work together, and [Rooms](rooms.md) what the packages below them offer.
"""
ROOMS = """# Python: rooms

Names of packages that programs of your own may use, too, beyond [those of `linker`](python.md). They may change in any
version. Errors come first: each names what was wrong, where, and the remedy.
"""
ERRORS = ("linker.base.errors", "indexes.errors")
PACKAGES = ("linker.review", "linker.corpora", "linker.evaluation")


def names_page() -> str:
    """Return the page in Markdown: what mkdocstrings fills in for each public name, where the name is defined."""
    values = [getattr(linker, name) for name in linker.__all__]
    return "\n".join([TITLE, *(entry for value in values for entry in _entries(value))])


def _entries(value: Any) -> Iterator[str]:
    """Yield the entry of a public name and, of a function whose arguments are the fields of a record, the record's."""
    yield _entry(_defined(value), 2)
    if function := getattr(value, "__wrapped__", None):
        yield _entry(_defined(get_type_hints(function)["options"]), 3)


def rooms_page() -> str:
    """Return the page in Markdown: the errors, the public names of each package, and the integrations."""
    shown = {_defined(getattr(linker, name)) for name in linker.__all__}
    parts = [ROOMS]
    for name in ERRORS:
        parts += [f"## `{name}`\n", *(_entry(path, 3) for path in _errors(importlib.import_module(name)))]
    for package in PACKAGES:
        for module in _modules(package):
            names = [
                p for name in module.__all__ if (p := _defined(getattr(module, name))) and p not in shown
            ]
            shown |= {*names}
            if names:
                parts += [
                    f"## `{module.__name__}`\n\n{inspect.getdoc(module)}\n",
                    *(_entry(p, 3) for p in names),
                ]
    integrations = importlib.import_module("linker.integrations")
    names = [info.name for info in pkgutil.iter_modules(integrations.__path__, "linker.integrations.")]
    return "\n".join([*parts, *(_entry(name, 2) for name in names)])


def _modules(package: str) -> Iterator[ModuleType]:
    """Yield a package and those inside it."""
    module = importlib.import_module(package)
    yield module
    for info in pkgutil.iter_modules(module.__path__, f"{package}."):
        if info.ispkg:
            yield from _modules(info.name)


def _errors(module: ModuleType) -> list[str]:
    classes = (
        value for value in vars(module).values() if inspect.isclass(value) and issubclass(value, Exception)
    )
    return [_defined(each) for each in classes if each.__module__ == module.__name__]


def _entry(path: str, level: int) -> str:
    return f"::: {path}\n    options: {{ heading_level: {level} }}\n"


def _defined(value: Any) -> str:
    """Return where a class or function is defined; empty for a constant or the name of a type."""
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return ""
    return f"{value.__module__}.{value.__qualname__}"
