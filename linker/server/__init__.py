"""All servers: the page, the HTTP API and MCP, behind one guard."""

__all__: list[str] = []
