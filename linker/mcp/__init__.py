"""Serves indexes and their reviews to language models by the Model Context Protocol (MCP)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.lazy import lazy

if TYPE_CHECKING:
    from linker.mcp.server import make_server
    from linker.mcp.shelf import Shelf

__all__ = ["Shelf", "make_server"]
__getattr__ = lazy(__name__, {"Shelf": "linker.mcp.shelf", "make_server": "linker.mcp.server"})
