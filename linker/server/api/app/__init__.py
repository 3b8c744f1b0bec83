"""The application made of all routes, and the server that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.server.api.app.making import ROUTES, Joined, add_api, service_app
    from linker.server.api.app.server import application, run

__all__ = ["ROUTES", "Joined", "add_api", "application", "run", "service_app"]
__getattr__ = lazy(__name__)
