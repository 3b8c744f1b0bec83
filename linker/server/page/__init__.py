"""The review workbench in a browser: `create_app` returns the application that `linker serve` runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.server.config import ServeConfig
    from linker.server.page.app import create_app

__all__ = ["ServeConfig", "create_app"]
__getattr__ = lazy(__name__)
