"""`linker serve` and `linker mcp`. The command line finds them by the entry points in pyproject.toml."""

__all__: list[str] = []
