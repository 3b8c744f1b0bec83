"""Serves indexes and their reviews to language models by the Model Context Protocol (MCP)."""

__all__: list[str] = []
