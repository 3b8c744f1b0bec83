"""The HTTP API: searches, documents and evaluation over open indexes, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.server.api.served import Served, Service
    from linker.server.config import Limits, ServeConfig

__all__ = ["Limits", "ServeConfig", "Served", "Service"]
__getattr__ = lazy(__name__)
