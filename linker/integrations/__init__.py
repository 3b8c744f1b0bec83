"""linker inside other frameworks, one module per framework."""

__all__: list[str] = []
