"""Serves indexes and their reviews to language models over the Model Context Protocol (MCP)."""

__all__: list[str] = []
