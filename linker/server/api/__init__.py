"""The HTTP API: searches, documents and evaluation over open indexes, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.server.api.config import Limits, ServiceConfig
    from linker.server.api.served import Served, Service

__all__ = ["Limits", "Served", "Service", "ServiceConfig"]
__getattr__ = lazy(__name__)
