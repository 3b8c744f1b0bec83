"""The command line: thin commands over the library. `main` is the entry point of `linker` and `python -m linker`."""

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.cli.entry import app, main

__all__ = ["app", "main"]
__getattr__ = lazy(__name__)
