"""The HTTP API: searches, documents and evaluation over open indexes, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.service.config import Limits, ServiceConfig
    from linker.service.served import SearchOptions, Served, Service

__all__ = ["Limits", "SearchOptions", "Served", "Service", "ServiceConfig"]
__getattr__ = lazy(
    __name__,
    {
        "Limits": "linker.service.config",
        "SearchOptions": "linker.service.served",
        "Served": "linker.service.served",
        "Service": "linker.service.served",
        "ServiceConfig": "linker.service.config",
    },
)
