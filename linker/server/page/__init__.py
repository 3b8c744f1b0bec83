"""The review workbench in a browser: `create_app` returns the application that `linker serve` runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.server.page.app import create_app
    from linker.server.page.config import ServeConfig

__all__ = ["ServeConfig", "create_app"]
__getattr__ = lazy(
    __name__, {"ServeConfig": "linker.server.page.config", "create_app": "linker.server.page.app"}
)
